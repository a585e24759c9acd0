// Colors of the current theme, as the style sheet has them.

export function currentTheme() {
  const style = getComputedStyle(document.documentElement);
  const property = (name) => style.getPropertyValue(name).trim();
  const channels = (name) => property(name).split(" ").map(Number);
  return {
    low: channels("--weight-low"),
    high: channels("--weight-high"),
    ink: property("--ink"),
    highlight: property("--highlight"),
    line: property("--line"),
    paper: property("--paper"),
  };
}

/** The red, green and blue of a weight between 0 and 1. */
export function weightChannels(weight, theme) {
  const fraction = Math.min(1, Math.max(0, weight));
  return theme.low.map((low, channel) => low + (theme.high[channel] - low) * fraction);
}

export function weightColor(weight, theme) {
  return `rgb(${weightChannels(weight, theme).map(Math.round).join(" ")})`;
}
