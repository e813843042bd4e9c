// Waits for what comes about by itself, however slow the machine is just now.

const patience = 60_000; // milliseconds

/** Asks again and again until `check` holds; throws, saying what did not, when that takes too long. */
export async function eventually(what: string, check: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + patience;
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`${what}: still not so after ${patience} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
