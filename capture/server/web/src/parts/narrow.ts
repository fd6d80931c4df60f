// Whether the window is as narrow as a phone's.

import { useEffect, useState } from "preact/hooks";

const NARROW = "(max-width: 720px)";

/** Whether the window is currently narrow. */
export function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const listen = (): void => setNarrow(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, []);
  return narrow;
}
