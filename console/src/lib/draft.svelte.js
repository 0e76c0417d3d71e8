// What stands in the editor, kept while other pages are looked at. Nothing of it is written to the browser's disk.
export const draft = $state({ text: "", step: 3, sandbox: false, answer: null });

// The slider's steps, in percent of the asker's whole limit: each is about half as dear again, or twice as dear.
export const SPENDS = ["0.1", "0.2", "0.5", "1", "2", "3", "5", "8", "10", "15", "20", "30", "50", "100"];

export function forgetDraft() {
  Object.assign(draft, { text: "", step: 3, sandbox: false, answer: null });
}
