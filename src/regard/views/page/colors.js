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

/** The red (0), green (1) or blue (2) of a weight between 0 and 1. */
export function weightChannel(weight, theme, channel) {
  const low = theme.low[channel];
  return low + (theme.high[channel] - low) * Math.min(1, Math.max(0, weight));
}

export function weightColor(weight, theme) {
  const [red, green, blue] = [0, 1, 2].map((channel) => Math.round(weightChannel(weight, theme, channel)));
  return `rgb(${red} ${green} ${blue})`;
}
