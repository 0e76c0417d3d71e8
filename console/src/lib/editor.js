// CodeMirror as this console uses it: SQL with completion from the study's tables, and the place of a refusal underlined.
import { acceptCompletion, autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { Compartment, EditorState, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  drawSelection,
  highlightSpecialChars,
  keymap,
  placeholder as emptyText,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { shown } from "./show.js";

const setRefused = StateEffect.define();

const refusedField = StateField.define({
  create: () => Decoration.none,
  update(marks, change) {
    for (const effect of change.effects) {
      if (!effect.is(setRefused)) continue;
      const { from, to } = effect.value ?? {};
      return effect.value === null ? Decoration.none : Decoration.set([Decoration.mark({ class: "cm-refused" }).range(from, to)]);
    }
    return change.docChanged ? Decoration.none : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.typeName, color: "var(--accent)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "transparent", fontSize: "14px" },
  "&.cm-focused": { outline: "none" },
  "&.cm-editor": { height: "100%" },
  ".cm-scroller": { fontFamily: "var(--code)", lineHeight: "1.6", minHeight: "132px", maxHeight: "60vh", overflow: "auto" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 14px" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  ".cm-placeholder": { color: "var(--quiet)" },
  ".cm-refused": { textDecoration: "underline wavy var(--bad) 1.5px", textUnderlineOffset: "4px", backgroundColor: "var(--bad-soft)" },
  ".cm-specialChar": { color: "var(--bad)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in srgb, var(--accent) 25%, transparent)",
  },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-soft)" },
  ".cm-tooltip": {
    border: "1px solid var(--line)",
    borderRadius: "10px",
    backgroundColor: "var(--raised)",
    boxShadow: "var(--shadow-high)",
    overflow: "hidden",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--code)", fontSize: "13px", maxHeight: "none", overflow: "hidden", minWidth: "240px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 12px", lineHeight: "1.5" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { background: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-tooltip.cm-tooltip-autocomplete-disabled > ul > li[aria-selected]": { background: "var(--spent)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionDetail": { fontStyle: "normal", color: "var(--quiet)", marginLeft: "1.2em" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-tooltip.cm-completionInfo": { padding: "8px 12px", fontFamily: "var(--text)", fontSize: "13px", maxWidth: "280px" },
});

/** Where "line 1, column 22" is in a text, to the end of the word that stands there; null where it says no place. */
export function findPlace(doc, place) {
  const found = /line (\d+), column (\d+)/.exec(String(place ?? ""));
  if (!found || Number(found[1]) < 1 || Number(found[1]) > doc.lines) return null;
  const line = doc.line(Number(found[1]));
  const start = Math.min(line.from + Math.max(Number(found[2]) - 1, 0), line.to);
  const word = /^(?:"[^"]*"?|'[^']*'?|[\p{L}\p{N}_.]+|\S)/u.exec(doc.sliceString(start, line.to));
  const from = start === line.to && start > line.from ? start - 1 : start;
  const to = word ? start + word[0].length : Math.min(from + 1, doc.length);
  return from < to ? { from, to } : null;
}

/** Tables and columns for completion: what is inserted is the name itself, what is shown has its hidden signs escaped. */
function completions(tables) {
  const of = (name, kind, detail, info) => ({
    label: name,
    displayLabel: shown(name, 60),
    type: kind,
    detail: shown(detail, 40),
    ...(info ? { info: shown(info, 300) } : {}),
  });
  return Object.fromEntries(
    tables.map((table) => [
      table.name,
      {
        self: of(table.name, "type", "", table.description),
        children: table.columns.map((column) => of(column.name, "property", column.type, column.description)),
      },
    ]),
  );
}

/** Columns without their table before them; those of tables that the question names come first. */
function completeColumns(tables) {
  const quoted = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
  return (context) => {
    const word = context.matchBefore(/[\p{L}_][\p{L}\p{N}_]*$/u);
    if (word === null || context.state.sliceDoc(Math.max(word.from - 1, 0), word.from) === ".") return null;
    const text = context.state.doc.toString();
    const options = tables.flatMap((table) =>
      table.columns.map((column) => ({
        label: column.name,
        displayLabel: shown(column.name, 60),
        apply: quoted(column.name),
        type: "property",
        detail: shown(`${table.name}, ${column.type}`, 60),
        boost: text.includes(table.name) ? 50 : 10,
        ...(column.description ? { info: shown(column.description, 300) } : {}),
      })),
    );
    return { from: word.from, options, validFor: /^[\p{L}\p{N}_]*$/u };
  };
}

/** Typing over a selection: the browser would carry its looks over by an inline style, which the page's policy forbids. */
function replaceSelected(event, view) {
  if (event.inputType !== "insertText" || !event.data || view.composing || view.state.selection.main.empty) return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  return true;
}

export function makeEditor(root, { text, label, placeholder, changed, ask }) {
  const language = new Compartment();
  const refusal = new Compartment();
  const speak = (tables) => {
    const known = sql({ dialect: PostgreSQL, upperCaseKeywords: true, schema: completions(tables) });
    return [known, known.language.data.of({ autocomplete: completeColumns(tables) })];
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([
          { key: "Mod-Enter", run: () => (ask(), true) },
          { key: "Tab", run: acceptCompletion },
          ...completionKeymap,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        history(),
        drawSelection(),
        highlightSpecialChars(),
        bracketMatching(),
        closeBrackets(),
        // few enough that the list never scrolls: all of it can be read by keys
        autocompletion({ icons: false, maxRenderedOptions: 9 }),
        EditorView.lineWrapping,
        emptyText(placeholder),
        syntaxHighlighting(colours),
        look,
        EditorView.domEventHandlers({ beforeinput: replaceSelected }),
        language.of(speak([])),
        refusal.of([]),
        refusedField,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocapitalize: "off" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    destroy: () => view.destroy(),
    focus: () => view.focus(),
    setText(next) {
      if (next === view.state.doc.toString()) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
    },
    setSchema: (tables) => view.dispatch({ effects: language.reconfigure(speak(tables)) }),
    setProblem(problem) {
      const marked = problem === null ? null : findPlace(view.state.doc, problem.place);
      const told = problem === null ? [] : EditorView.contentAttributes.of({ "aria-invalid": "true" });
      view.dispatch({ effects: [setRefused.of(marked), refusal.reconfigure(told)] });
    },
  };
}
