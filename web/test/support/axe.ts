// axe-core's verdict on a page, as one line for each thing it finds.
import axe from "axe-core";
import type { Page } from "playwright-core";

export async function violations(page: Page): Promise<string[]> {
  // Evaluated by the debugger, which the page's security policy does not bind.
  await page.evaluate(axe.source);
  const found = await page.evaluate(async () => {
    const { axe: run } = window as unknown as { axe: typeof axe };
    const result = await run.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return result.violations.map(({ id, nodes }) => ({
      id,
      nodes: nodes.map((node) => `${node.html} ${node.failureSummary ?? ""}`),
    }));
  });
  return found.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node}`));
}
