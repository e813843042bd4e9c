// How replies are asked for. What is left empty is the server's choice.
import type { ChatRequest, CompletionRequest, Model } from "../api/client.ts";
import type { Conversation } from "./conversation.ts";

export interface NumberSetting {
  name: string; // in the request
  label: string;
  hint: string;
  min: number;
  max: number;
  whole: boolean;
}

export const numberSettings: readonly NumberSetting[] = [
  {
    name: "temperature",
    label: "Temperature",
    hint: "0: always the likeliest token",
    min: 0,
    max: 2,
    whole: false,
  },
  {
    name: "top_p",
    label: "Top p",
    hint: "the likeliest tokens that make up this share",
    min: 0,
    max: 1,
    whole: false,
  },
  {
    name: "top_k",
    label: "Top k",
    hint: "this many of the likeliest tokens; 0: all",
    min: 0,
    max: 1e6,
    whole: true,
  },
  {
    name: "min_p",
    label: "Min p",
    hint: "at least this share of the likeliest one's chance",
    min: 0,
    max: 1,
    whole: false,
  },
  {
    name: "repeat_penalty",
    label: "Repeat penalty",
    hint: "against what came lately; 1: none",
    min: 0.1,
    max: 10,
    whole: false,
  },
  {
    name: "presence_penalty",
    label: "Presence penalty",
    hint: "against words that came before",
    min: -2,
    max: 2,
    whole: false,
  },
  {
    name: "frequency_penalty",
    label: "Frequency penalty",
    hint: "against words, by how often they came",
    min: -2,
    max: 2,
    whole: false,
  },
  {
    name: "max_tokens",
    label: "Tokens at most",
    hint: "of a reply",
    min: 1,
    max: 1e7,
    whole: true,
  },
  {
    name: "seed",
    label: "Seed",
    hint: "the same seed gives the same reply",
    min: 0,
    max: 4294967295,
    whole: true,
  },
];

export interface Settings {
  numbers: Record<string, number>; // by name; what is not there is left to the server
  stop: string[];
  system: string; // for new conversations
}

export const noSettings: Settings = { numbers: {}, stop: [], system: "" };

/** What is wrong with a field's text, or its value (null: empty). */
export function parseNumber(
  setting: NumberSetting,
  text: string,
): { value: number | null } | { wrong: string } {
  const trimmed = text.trim();
  if (trimmed === "") return { value: null };
  const value = Number(trimmed);
  if (!Number.isFinite(value)) return { wrong: `${setting.label}: “${trimmed}” is not a number.` };
  if (setting.whole && !Number.isInteger(value))
    return { wrong: `${setting.label}: ${trimmed} is not a whole number.` };
  if (value < setting.min || value > setting.max) {
    return { wrong: `${setting.label}: ${trimmed} is not from ${setting.min} to ${setting.max}.` };
  }
  return { value };
}

/** Settings from storage: whatever does not fit is dropped. */
export function settingsOf(value: unknown): Settings {
  const stored = (typeof value === "object" && value !== null ? value : {}) as Partial<
    Record<keyof Settings, unknown>
  >;
  const numbers: Record<string, number> = {};
  const given = (
    typeof stored.numbers === "object" && stored.numbers !== null ? stored.numbers : {}
  ) as Record<string, unknown>;
  for (const setting of numberSettings) {
    const parsed = parseNumber(setting, String(given[setting.name] ?? ""));
    if ("value" in parsed && parsed.value !== null) numbers[setting.name] = parsed.value;
  }
  const stop = Array.isArray(stored.stop)
    ? stored.stop.filter((text) => typeof text === "string" && text !== "")
    : [];
  return { numbers, stop, system: typeof stored.system === "string" ? stored.system : "" };
}

/**
 * The request for the next reply. Replies that failed before they said anything are left out, and
 * what then stands side by side becomes one message: many templates want roles to alternate.
 */
export function requestFor(
  conversation: Conversation,
  settings: Settings,
  model: Model | null,
): ChatRequest {
  const messages: ChatRequest["messages"] = [];
  if (conversation.system.trim()) messages.push({ role: "system", content: conversation.system });
  for (const { role, content } of conversation.messages) {
    const last = messages[messages.length - 1];
    if (role === "assistant" && content === "") continue;
    if (last?.role === role) last.content += `\n\n${content}`;
    else messages.push({ role, content });
  }
  return {
    messages,
    ...optionsOf(settings, model),
  };
}

function optionsOf(settings: Settings, model: Model | null): Record<string, unknown> {
  return {
    ...(model === null ? {} : { model: model.id }),
    ...settings.numbers,
    ...(settings.stop.length > 0 ? { stop: settings.stop } : {}),
  };
}

/** Tokens of a continued text, unless a setting says how many: such models seldom end by themselves. */
const continuedTokens = 256;

/** For models without a chat template, which continue a text: all that was said, as one. */
export function continuationFor(
  conversation: Conversation,
  settings: Settings,
  model: Model | null,
): CompletionRequest {
  const parts: string[] = conversation.system.trim() ? [`${conversation.system}\n`] : [];
  conversation.messages.forEach(({ role, content }, index) => {
    parts.push(role === "user" && index > 0 ? `\n${content}` : content);
  });
  return { prompt: parts.join(""), max_tokens: continuedTokens, ...optionsOf(settings, model) };
}
