/** Light, dark, or as the system says; remembered by this browser alone. */
export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'boxwright-theme';

/** What is chosen now. */
export function currentTheme(): Theme {
  const saved = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === saved) ?? 'system';
}

/** Shows the page in this theme, and remembers it. */
export function applyTheme(theme: Theme = currentTheme()): void {
  localStorage.setItem(KEY, theme);
  document.documentElement.dataset['theme'] = theme;
}
