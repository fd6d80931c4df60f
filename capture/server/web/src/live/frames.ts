// Parsers for the two forms of the stream: lines of JSON over a WebSocket, and server-sent events if no WebSocket can
// be opened. Unlike `EventSource`, the parser of server-sent events exposes keepalives and refusals.

/** One event of the stream; a comment (a keepalive) has the name `keepalive`. */
export type Frame = { name: string; id: string | null; data: string };

/** Parses a stream of events, whatever the sizes of its pieces. */
export class FrameReader {
  private pieces: string[] = [];
  private last = "";

  /** The frames that this piece completes. */
  read(piece: string): Frame[] {
    const ends = (this.last + piece).includes("\n\n");
    this.pieces.push(piece);
    this.last = piece.slice(-1) || this.last;
    if (!ends) return [];
    const text = this.pieces.join("");
    const end = text.lastIndexOf("\n\n");
    this.pieces = [text.slice(end + 2)];
    return text
      .slice(0, end)
      .split("\n\n")
      .map(frame)
      .filter((found) => found !== null);
  }
}

function frame(text: string): Frame | null {
  let name = "message";
  let id: string | null = null;
  let comment = false;
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0) comment = true;
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    const field = line.slice(0, colon);
    if (field === "event") name = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  if (data.length > 0) return { name, id, data: data.join("\n") };
  return comment ? { name: "keepalive", id: null, data: "" } : null;
}

/** One message of the stream over a WebSocket. `sent` ends a piece: it contains the time, and the position to resume
 * from if everything was sent. */
export type Line = { type: string; epoch?: string; position?: number; at?: string; data?: unknown };

/** Parses lines of JSON, whatever the sizes of their pieces. */
export class LineReader {
  private pieces: string[] = [];

  /** The lines that this piece completes. */
  read(piece: string): Line[] {
    const end = piece.lastIndexOf("\n");
    if (end < 0) {
      this.pieces.push(piece);
      return [];
    }
    const text = this.pieces.join("") + piece.slice(0, end);
    this.pieces = [piece.slice(end + 1)];
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Line);
  }
}
