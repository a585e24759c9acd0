// The beam as a tree: outputs share their beginnings; a word in hand shows where it looks.

/** Nodes of a tree of branches, each with its children, its depth, and a branch it is of. */
function treeOf(branches) {
  const root = { label: "", children: [], depth: 0, branch: 0, at: -1 };
  branches.forEach((branch, number) => {
    let here = root;
    branch.labels.forEach((label, at) => {
      let next = here.children.find((child) => child.label === label);
      if (!next) {
        next = { label, children: [], depth: here.depth + 1, branch: number, at };
        here.children.push(next);
      }
      here = next;
    });
    here.end = number;
  });
  return root;
}

class BeamView {
  constructor(panel, tell) {
    this.tell = tell;
    this.box = element("div", "scroll");
    this.read = sentence();
    panel.append(this.read, this.box);
  }

  show(view, found, capture) {
    const { beam, source } = capture.record;
    const root = treeOf(beam);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = FONT;
    const name = (node) => cut(node.label.replace("▁", "·"));
    const wide = []; // of each depth, so that words of one step stand one above the other
    const measure = (node) => {
      wide[node.depth] = Math.max(wide[node.depth] || 0, node.depth ? pen.measureText(name(node)).width + 26 : 0);
      node.children.forEach(measure);
    };
    measure(root);
    const left = wide.map((_, depth) => wide.slice(0, depth).reduce((sum, each) => sum + each, 10));
    let rows = 0;
    const place = (node) => {
      node.children.forEach(place);
      node.x = left[node.depth];
      node.y = node.children.length ? node.children[0].y : 24 + 30 * rows++;
    };
    place(root);
    const across = left[left.length - 1] + wide[wide.length - 1] + 90;
    const svg = shape("svg", { width: across, height: 24 + 30 * rows, viewBox: `0 0 ${across} ${24 + 30 * rows}`, role: "group", "aria-label": "Outputs of the beam, which share their beginnings" });
    const words = places(source, true, false);
    const look = (node) => {
      const matrix = unpacked(beam[node.branch].aligned);
      const folded_ = folded(matrix, [{ label: node.label, pieces: [node.at] }], words);
      const colours = theme();
      this.read.replaceChildren(...words.map((word, at) => {
        const shown_ = element("span", folded_.data[at] > 0.5 ? "word strong" : "word", cut(word.label));
        shown_.style.backgroundColor = colour(folded_.data[at], colours);
        return shown_;
      }).flatMap(spaced));
      const best = folded_.data.indexOf(Math.max(...folded_.data));
      const chance = Math.exp(beam[node.branch].token_scores[node.at]);
      this.tell(`${apart(name(node))}: probability ${chance.toFixed(3)}, from ${apart(cut(words[best].label))} ${folded_.data[best].toFixed(3)}`);
    };
    const draw = (node) => {
      for (const child of node.children) {
        const chance = Math.exp(beam[child.branch].token_scores[child.at]);
        if (node.depth) {
          const from = node.x + pen.measureText(name(node)).width + 4;
          svg.append(shape("path", { d: `M ${from} ${node.y} C ${child.x - 12} ${node.y}, ${from + 6} ${child.y}, ${child.x - 4} ${child.y}`, class: "arc", "stroke-width": (0.5 + 3 * chance).toFixed(2), "stroke-opacity": Math.max(0.25, chance).toFixed(2) }));
        }
        const text = shape("text", { x: child.x, y: child.y + 4, class: found(child.label) ? "word lit" : "word", tabindex: 0 });
        text.textContent = name(child);
        for (const event of ["pointerenter", "focus"]) text.addEventListener(event, () => look(child));
        svg.append(text);
        if (child.end !== undefined) {
          const score = shape("text", { x: child.x + pen.measureText(name(child)).width + 10, y: child.y + 4, class: "score" });
          score.textContent = beam[child.end].score.toFixed(2);
          svg.append(score);
        }
        draw(child);
      }
    };
    draw(root);
    const about = "The model's own search. At the end of each output its score, by which the best is chosen: the nearer to 0, the better.";
    this.box.replaceChildren(svg, element("p", "quiet", about));
    if (root.children.length) look(root.children[0]);
  }
}
