// Light or dark: what the system says, until the person says otherwise.
const KEY = "curador-theme";
const CHOICES = ["system", "light", "dark"];

function stored() {
  try {
    const found = localStorage.getItem(KEY);
    return CHOICES.includes(found) ? found : "system";
  } catch {
    return "system"; // a browser that keeps nothing
  }
}

export const theme = $state({ choice: stored() });

export function applyTheme() {
  const root = document.documentElement;
  if (theme.choice === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.choice;
}

export function nextTheme() {
  theme.choice = CHOICES[(CHOICES.indexOf(theme.choice) + 1) % CHOICES.length];
  try {
    localStorage.setItem(KEY, theme.choice);
  } catch {
    // idem: it holds for this page
  }
  applyTheme();
}
