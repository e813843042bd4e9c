// Reading data whose shape is not certain: each reader returns the value, checked, or throws an
// error that names the place.

export class FormatError extends Error {
  override name = "FormatError";
}

function wrong(where: string, wanted: string, value: unknown): never {
  const found = value === null ? "null" : Array.isArray(value) ? "a list" : typeof value;
  throw new FormatError(
    `${where} should be ${wanted}, and is ${value === undefined ? "missing" : found}.`,
  );
}

export type Fields = Record<string, unknown>;

export function fields(value: unknown, where: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    wrong(where, "an object", value);
  return value as Fields;
}

export function list<T>(
  value: unknown,
  where: string,
  item: (value: unknown, where: string) => T,
): T[] {
  if (!Array.isArray(value)) wrong(where, "a list", value);
  return value.map((entry, index) => item(entry, `${where}[${index}]`));
}

export function text(value: unknown, where: string): string {
  if (typeof value !== "string") wrong(where, "text", value);
  return value;
}

export function number(value: unknown, where: string): number {
  if (typeof value !== "number" || !Number.isFinite(value)) wrong(where, "a number", value);
  return value;
}

/** A number that may be missing: null. */
export function maybeNumber(value: unknown, where: string): number | null {
  return value === null || value === undefined ? null : number(value, where);
}

/** A whole number from `low` to below `end`. */
export function index(value: unknown, where: string, end: number, low = 0): number {
  const whole = number(value, where);
  if (!Number.isInteger(whole) || whole < low || whole >= end) {
    throw new FormatError(
      `${where} is ${whole}, which is not a whole number from ${low} to ${end - 1}.`,
    );
  }
  return whole;
}
