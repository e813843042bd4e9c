// Chromium, once for each test file, and a page with a fresh storage for each test.
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { StubServer } from "./stub_server.ts";

export function environment(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: start the tests with npm run test:browser`);
  return value;
}

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: environment("HEDDLE_CHROMIUM"),
    args: ["--no-sandbox", "--disable-gpu"],
  });
}

export interface Site {
  page: Page;
  server: StubServer;
  troubles: string[]; // errors in the console, exceptions, and requests to anywhere else
  close(): Promise<void>;
}

/** Errors in the console, exceptions, and requests to anywhere but `home`, as they come. */
export function watch(page: Page, home: string): string[] {
  const troubles: string[] = [];
  page.on("console", (message) => {
    // Chromium reports each refused request too: those are what some tests are about.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      troubles.push(message.text());
  });
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(home) && !url.startsWith("blob:") && !url.startsWith("data:"))
      troubles.push(`asked for ${url}`);
  });
  return troubles;
}

/** The page from a stub server of its own. `prepare` runs before it is opened. */
export async function open(
  browser: Browser,
  options: BrowserContextOptions & { at?: string; prepare?: (server: StubServer) => void } = {},
): Promise<Site> {
  const { at = "", prepare, ...context } = options;
  const server = await StubServer.start(environment("HEDDLE_WEB_DIST"));
  prepare?.(server);
  const browserContext = await browser.newContext(context);
  const page = await browserContext.newPage();
  page.setDefaultTimeout(60000);
  const troubles = watch(page, server.address);
  await page.goto(`${server.address}/${at}`);
  const close = async () => {
    await browserContext.close();
    await server.close();
  };
  return { page, server, troubles, close };
}
