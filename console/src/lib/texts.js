// Every text that the console says by itself, from one catalogue a language; a missing key is an error, not an empty label.
import en from "../texts/en.json";

const CATALOGUES = { en };
const language = (navigator.languages ?? ["en"]).map((one) => one.slice(0, 2)).find((one) => CATALOGUES[one]) ?? "en";
const texts = CATALOGUES[language];
const plural = new Intl.PluralRules(language);

export const locale = language;

/** The text of a key with its {names} filled in; with a count, the text of `key.one` or `key.other`. */
export function t(key, values = {}) {
  const counted = "count" in values ? `${key}.${plural.select(Number(values.count))}` : key;
  const found = texts[counted] ?? texts[`${key}.other`] ?? texts[key];
  if (found === undefined) throw new Error(`no text for ${key}`);
  return found.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
