//! Room for what waits for ingest, in bytes: a batch may hold one short event or a megabyte of texts.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

/// Bytes of batches that may wait.
const ROOM_BYTES: usize = 16 << 20;

/// The room. Whoever finds none waits, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Room {
    state: Mutex<RoomState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct RoomState {
    /// Bytes in use.
    used: usize,
    /// The number of the next one who comes.
    next: u64,
    /// The number of the one whose turn it is.
    turn: u64,
}

/// Room in use, until it is dropped.
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
    /// Waits until there is room for these bytes. More than there is at all find room when nothing else is in it.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> UsedRoom {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        while state.turn != number || (state.used > 0 && state.used + bytes > ROOM_BYTES) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.turn += 1;
        state.used += bytes;
        let others_wait = state.turn != state.next;
        drop(state);
        if others_wait {
            self.changed.notify_all();
        }
        UsedRoom { room: Arc::clone(self), bytes }
    }

    fn lock(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UsedRoom {
    fn drop(&mut self) {
        let mut state = self.room.lock();
        state.used -= self.bytes;
        let others_wait = state.turn != state.next;
        drop(state);
        if others_wait {
            self.room.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn batches_find_room_in_the_order_in_which_they_came() {
        let room = Arc::new(Room::default());
        let first = room.take(ROOM_BYTES - 10);
        let (send, taken) = mpsc::channel();
        let waiting: Vec<_> = [11, 1]
            .into_iter()
            .enumerate()
            .map(|(place, bytes)| {
                let (room_of, send) = (Arc::clone(&room), send.clone());
                let thread = std::thread::spawn(move || {
                    let used = room_of.take(bytes);
                    send.send(bytes).unwrap();
                    used
                });
                // It has its number before the next one comes.
                while room.lock().next < place as u64 + 2 {
                    std::thread::yield_now();
                }
                thread
            })
            .collect();
        // The second would fit, but the first came before it.
        assert!(taken.try_recv().is_err());
        assert_eq!(room.lock().used, ROOM_BYTES - 10);
        drop(first);
        assert_eq!([taken.recv().unwrap(), taken.recv().unwrap()], [11, 1]);
        let used: Vec<UsedRoom> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(room.lock().used, 12);
        drop(used);
        assert_eq!(room.lock().used, 0);
    }

    #[test]
    fn what_is_larger_than_the_room_finds_it_alone() {
        let room = Arc::new(Room::default());
        let large = room.take(2 * ROOM_BYTES);
        let next = std::thread::spawn({
            let room = Arc::clone(&room);
            move || room.take(1)
        });
        while room.lock().next < 2 {
            std::thread::yield_now();
        }
        assert_eq!(room.lock().turn, 1, "the next one waits");
        drop(large);
        drop(next.join().unwrap());
    }
}
