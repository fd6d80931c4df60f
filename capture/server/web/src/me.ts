// The server's view of this browser: its device and scope.

import { computed, signal } from "@preact/signals";
import { ApiFailure, call, paired } from "./api/client";
import type { Me } from "./api/routes";
import { follow, now, unfollow } from "./live/store";

/** The device and its scope; `null` until known. */
export const me = signal<Me | null>(null);
/** Why the server did not identify this browser. */
export const meFailed = signal<unknown>(null);

/** Whether this browser may decide, type and change marks. */
export const mayControl = computed(() => me.value !== null && me.value.device.scope !== "read");
/** Whether the last step-up is still valid. */
export const elevated = computed(() => me.value?.elevated_until != null && Date.parse(me.value.elevated_until) > now.value);

/** Asks the server to identify this browser, and starts the stream if it is paired. */
export async function identify(): Promise<void> {
  // Start the stream now, so that the list is loaded as soon as this request is answered.
  follow();
  try {
    me.value = await call("GET /api/v1/me");
    meFailed.value = null;
    paired.value = true;
  } catch (cause) {
    if (cause instanceof ApiFailure && cause.status === 401) paired.value = false;
    else meFailed.value = cause;
  }
}

/** Signs this browser out, here and at the server. */
export async function signOut(): Promise<void> {
  await call("POST /api/v1/sign-out", { body: {} });
  unfollow();
  me.value = null;
  paired.value = false;
}
