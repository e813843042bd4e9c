// The dialog for the key, the sampling settings and the system prompt of new conversations.
import { announce } from "../base/announce.ts";
import { byId, h } from "../base/dom.ts";
import type { Preferences } from "./preferences.ts";
import { numberSettings, parseNumber, type NumberSetting, type Settings } from "./settings.ts";

export class SettingsDialog {
  private readonly dialog = byId("settings", HTMLDialogElement);
  private readonly form = byId("settings-form", HTMLFormElement);
  private readonly key = byId("api-key", HTMLInputElement);
  private readonly remember = byId("remember-key", HTMLInputElement);
  private readonly system = byId("default-system", HTMLTextAreaElement);
  private readonly stop = byId("stop-texts", HTMLTextAreaElement);
  private readonly wrong = byId("settings-wrong", HTMLElement);
  private readonly numbers: [NumberSetting, HTMLInputElement][];

  constructor(
    private readonly preferences: Preferences,
    private readonly saved: () => void,
  ) {
    this.numbers = numberSettings.map((setting) => [setting, this.addField(setting)]);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.save();
    });
    byId("settings-cancel", HTMLButtonElement).addEventListener("click", () => this.dialog.close());
  }

  private addField(setting: NumberSetting): HTMLInputElement {
    const id = `setting-${setting.name}`;
    const input = h("input", {
      id,
      inputmode: setting.whole ? "numeric" : "decimal",
      autocomplete: "off",
      placeholder: "as the server has it",
      "aria-describedby": `${id}-hint`,
    });
    byId("setting-fields", HTMLElement).append(
      h(
        "div",
        { class: "field" },
        h("label", { for: id }, setting.label),
        input,
        h("p", { class: "hint", id: `${id}-hint` }, setting.hint),
      ),
    );
    return input;
  }

  open(): void {
    const { settings } = this.preferences;
    this.key.value = this.preferences.apiKey;
    this.remember.checked = this.preferences.remembersKey;
    this.system.value = settings.system;
    this.stop.value = settings.stop.join("\n");
    for (const [setting, input] of this.numbers)
      input.value = String(settings.numbers[setting.name] ?? "");
    this.say("");
    this.dialog.showModal();
  }

  private say(wrong: string): void {
    this.wrong.textContent = wrong;
    this.wrong.hidden = wrong === "";
  }

  private save(): void {
    const numbers: Settings["numbers"] = {};
    for (const [setting, input] of this.numbers) {
      const parsed = parseNumber(setting, input.value);
      input.setAttribute("aria-invalid", String("wrong" in parsed));
      if ("wrong" in parsed) {
        this.say(parsed.wrong);
        input.focus();
        return;
      }
      if (parsed.value !== null) numbers[setting.name] = parsed.value;
    }
    const stop = this.stop.value.split("\n").filter((line) => line !== "");
    this.preferences.setSettings({ numbers, stop, system: this.system.value });
    this.preferences.setApiKey(this.key.value.trim(), this.remember.checked);
    this.dialog.close();
    announce("Settings saved");
    this.saved();
  }
}
