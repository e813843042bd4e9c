// The settings and the API key, in the browser's storage. The key outlives the tab only if asked to.
import { noSettings, settingsOf, type Settings } from "./settings.ts";

const settingsKey = "heddle.settings";
const apiKeyKey = "heddle.api-key";

function read(storage: () => Storage, key: string): string | null {
  try {
    return storage().getItem(key);
  } catch {
    return null; // storage is off
  }
}

function write(storage: () => Storage, key: string, value: string | null): void {
  try {
    if (value === null) storage().removeItem(key);
    else storage().setItem(key, value);
  } catch {
    // storage is off or full: it holds until the page is left
  }
}

export class Preferences {
  private settings_: Settings = noSettings;
  private apiKey_: string;
  private remembersKey_: boolean;

  constructor() {
    try {
      this.settings_ = settingsOf(JSON.parse(read(() => localStorage, settingsKey) ?? "null"));
    } catch {
      this.settings_ = noSettings;
    }
    const kept = read(() => localStorage, apiKeyKey);
    this.remembersKey_ = kept !== null;
    this.apiKey_ = kept ?? read(() => sessionStorage, apiKeyKey) ?? "";
  }

  get settings(): Settings {
    return this.settings_;
  }
  get apiKey(): string {
    return this.apiKey_;
  }
  get remembersKey(): boolean {
    return this.remembersKey_;
  }

  setSettings(settings: Settings): void {
    this.settings_ = settings;
    write(() => localStorage, settingsKey, JSON.stringify(settings));
  }

  setApiKey(key: string, remember: boolean): void {
    this.apiKey_ = key;
    this.remembersKey_ = remember && key !== "";
    write(() => localStorage, apiKeyKey, this.remembersKey_ ? key : null);
    write(() => sessionStorage, apiKeyKey, key === "" ? null : key);
  }
}
