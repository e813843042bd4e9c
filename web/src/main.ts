// The page: two views, chosen by the address (#chat, #graph), and what they share.
import { Client } from "./api/client.ts";
import { byId } from "./base/dom.ts";
import { startTheme } from "./base/theme.ts";
import { ChatPage } from "./chat/chat_page.ts";
import { Preferences } from "./chat/preferences.ts";
import { SettingsDialog } from "./chat/settings_dialog.ts";
import { GraphPage } from "./graph/graph_page.ts";

const views = ["chat", "graph"] as const;

function start(): void {
  const preferences = new Preferences();
  const client = new Client(() => preferences.apiKey);
  const chat = new ChatPage(client, preferences, showTitle);
  const graph = new GraphPage(client);
  const settings = new SettingsDialog(preferences, () => void showModel());
  byId("open-settings", HTMLButtonElement).addEventListener("click", () => settings.open());
  startTheme(byId("theme", HTMLButtonElement), () => graph.coloursChanged());

  async function showModel(): Promise<void> {
    const place = byId("model", HTMLElement);
    try {
      const [model] = await client.models();
      chat.model = model ?? null;
      place.textContent = model?.id ?? "no model";
      chat.say("");
    } catch (error) {
      chat.model = null;
      place.textContent = "no model";
      chat.say(error instanceof Error ? error.message : String(error));
    }
    place.title = place.textContent;
  }

  function showTitle(): void {
    document.title = `${location.hash === "#graph" ? "Graph" : chat.title} · heddle`;
  }

  let shown = "";
  function route(): void {
    const wanted = views.find((view) => location.hash === `#${view}`) ?? "chat";
    if (shown === wanted) return;
    const first = shown === "";
    shown = wanted;
    for (const view of views) {
      byId(`${view}-view`, HTMLElement).hidden = view !== wanted;
      const link = byId(`${view}-link`, HTMLAnchorElement);
      if (view === wanted) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    graph.shown(wanted === "graph");
    showTitle();
    if (wanted === "chat") byId("message", HTMLTextAreaElement).focus();
    else if (!first) byId("main", HTMLElement).focus();
  }

  addEventListener("hashchange", route);
  // The link's own way would change the address, which chooses the view.
  byId("skip", HTMLAnchorElement).addEventListener("click", (event) => {
    event.preventDefault();
    byId("main", HTMLElement).focus();
  });
  route();
  void showModel();
}

start();
