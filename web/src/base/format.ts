// Quantities as people read them.

const sizes = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** "1.5 MiB". */
export function bytes(count: number): string {
  let size = 0;
  let value = count;
  while (Math.abs(value) >= 1024 && size < sizes.length - 1) {
    value /= 1024;
    ++size;
  }
  return `${size === 0 ? value : short(value)} ${sizes[size]}`;
}

/** Three significant digits, without an exponent. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toFixed(digits);
}

/** A duration given in microseconds: "12.3 µs", "4.56 ms", "1.20 s". */
export function microseconds(duration: number): string {
  if (duration >= 1e6) return `${short(duration / 1e6)} s`;
  if (duration >= 1e3) return `${short(duration / 1e3)} ms`;
  return `${short(duration)} µs`;
}

/** A number of any size in at most four significant digits. */
export function quantity(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(3);
  return String(Number(value.toPrecision(4)));
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

export function count(amount: number, one: string, many = `${one}s`): string {
  return `${amount.toLocaleString("en")} ${amount === 1 ? one : many}`;
}
