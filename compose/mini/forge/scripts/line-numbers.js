// Numbers the lines of a highlighted block. The pages expect highlightjs-line-numbers, which Debian does not have.
hljs.lineNumbersBlock = function (block) {
  const open = [];
  const rows = block.innerHTML.replace(/\r?\n$/, "").split(/\r?\n/).map((line, index) => {
    // Elements that are open at the end of a line are closed there and opened again in the next row.
    const before = open.join("");
    for (const tag of line.match(/<span[^>]*>|<\/span>/g) || []) {
      if (tag === "</span>") open.pop();
      else open.push(tag);
    }
    const number = index + 1;
    return `<tr><td class="hljs-ln-numbers" data-line-number="${number}"><div id="_${number}" data-line-number="${number}"></div></td>` +
      `<td class="hljs-ln-code">${before}${line}${"</span>".repeat(open.length)}\n</td></tr>`;
  });
  block.innerHTML = `<table class="hljs-ln"><tbody>${rows.join("")}</tbody></table>`;
};
