// How fast a reply comes: tokens after the first, by the time since the first.

export class Rate {
  private first: number | null = null;
  private last = 0;
  private pieces = 0;

  /** A piece of text came at this time (milliseconds). */
  piece(now: number): void {
    this.first ??= now;
    this.last = now;
    ++this.pieces;
  }

  /** `tokens`: as the server counts them; null while it has not said: then pieces stand for them. */
  perSecond(tokens: number | null): number | null {
    if (this.first === null || this.last <= this.first) return null;
    const after = (tokens ?? this.pieces) - 1;
    return after > 0 ? (after * 1000) / (this.last - this.first) : null;
  }
}
