//! A byte limit on batches that wait for ingest: a batch may contain one short event or a megabyte of texts.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

/// Maximum bytes of waiting batches.
const ROOM_BYTES: usize = 8 << 20;

/// The limit. Threads that find no room wait in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Room {
    state: Mutex<RoomState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct RoomState {
    /// Bytes in use.
    used: usize,
    /// Number of the next arrival.
    next: u64,
    /// Number of the waiter whose turn it is.
    turn: u64,
}

/// Reserved room; released on drop.
pub(crate) struct UsedRoom {
    room: Arc<Room>,
    bytes: usize,
}

impl fmt::Debug for UsedRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UsedRoom").field(&self.bytes).finish()
    }
}

impl Room {
    /// Waits until there is room for these bytes. A batch larger than the limit is admitted when nothing else is
    /// waiting.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> UsedRoom {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        while state.turn != number || (state.used > 0 && state.used + bytes > ROOM_BYTES) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.turn += 1;
        state.used += bytes;
        self.wake_others(state);
        UsedRoom { room: Arc::clone(self), bytes }
    }

    /// Wakes the waiters; makes no system call if there are none.
    fn wake_others(&self, state: MutexGuard<'_, RoomState>) {
        let others_wait = state.turn != state.next;
        drop(state);
        if others_wait {
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UsedRoom {
    fn drop(&mut self) {
        let mut state = self.room.lock();
        state.used -= self.bytes;
        self.room.wake_others(state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Starts a thread that reserves room and sends the reservation to `taken`. Returns once the thread is queued.
    fn take_on_a_thread(room: &Arc<Room>, bytes: usize, taken: &mpsc::Sender<UsedRoom>) {
        let before = room.lock().next;
        let (room_of, taken) = (Arc::clone(room), taken.clone());
        std::thread::spawn(move || taken.send(room_of.take(bytes)).unwrap());
        while room.lock().next == before {
            std::thread::yield_now();
        }
    }

    #[test]
    fn batches_get_room_in_arrival_order() {
        let room = Arc::new(Room::default());
        let (send, taken) = mpsc::channel();
        let first = room.take(ROOM_BYTES - 10);
        // The third would fit beside the first, and the second once the first is gone.
        for bytes in [11, ROOM_BYTES, 5] {
            take_on_a_thread(&room, bytes, &send);
        }
        assert_eq!(room.lock().used, ROOM_BYTES - 10);
        drop(first);
        for bytes in [11, ROOM_BYTES, 5] {
            let used = taken.recv().unwrap();
            assert_eq!((used.bytes, room.lock().used), (bytes, bytes));
        }
    }

    #[test]
    fn a_batch_larger_than_the_room_is_admitted_alone() {
        let room = Arc::new(Room::default());
        let (send, taken) = mpsc::channel();
        let large = room.take(2 * ROOM_BYTES);
        take_on_a_thread(&room, 1, &send);
        assert_eq!(room.lock().turn, 1, "the next one waits");
        drop(large);
        drop(taken.recv().unwrap());
        assert_eq!(room.lock().used, 0);
    }
}
