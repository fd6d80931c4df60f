"use strict";
// Texts become nodes here, and nowhere else. What comes from the session is only ever set as the text of a node.

const make = (tag, cls, ...inside) => {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  node.append(...inside.filter((part) => part !== null && part !== undefined && part !== ""));
  return node;
};

// Characters that are not seen or that move others: written as their number.
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

const visible = (text) => {
  const parts = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > from) parts.append(text.slice(from, found.index));
    parts.append(make("span", "hid", "U+" + found[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")));
    from = found.index + 1;
  }
  if (from < text.length) parts.append(from ? text.slice(from) : text);
  return parts;
};

const plainLine = (text, length) => {
  const line = text.slice(0, length * 4).replace(HIDDEN, "").replace(/\s+/g, " ").trim();
  return line.length > length ? line.slice(0, length - 1) + "…" : line;
};

// So much of a text is shown at first, characters.
const SHOWN = 12000;

// A text that may be long: its beginning, and a button for the rest.
const shortened = (text, show) => {
  if (text.length <= SHOWN) return show(text);
  const holder = make("div");
  const more = make("button", "more", `Show all of it (${text.length.toLocaleString("en")} characters)`);
  more.type = "button";
  more.addEventListener("click", () => holder.replaceChildren(show(text)));
  holder.append(show(text.slice(0, SHOWN) + " …"), more);
  return holder;
};

const code = (text, cls) => shortened(text, (part) => make("pre", cls, visible(part)));

// Links are shown with their host and lead there only on a click; everything but http stays text.
const link = (words, target) => {
  let url;
  try { url = new URL(target); } catch { return visible(words === target ? words : `${words} (${target})`); }
  if (url.protocol !== "https:" && url.protocol !== "http:") return visible(`${words} (${target})`);
  const anchor = make("a", "", visible(words));
  anchor.href = url.href;
  anchor.rel = "noopener noreferrer nofollow";
  anchor.target = "_blank";
  const parts = document.createDocumentFragment();
  parts.append(anchor);
  if (!words.includes(url.host)) parts.append(make("span", "host", ` (${url.host})`));
  return parts;
};

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|(!?)\[([^\]\n]{1,300})\]\(([^\s()]{1,2000})\)|(https?:\/\/[^\s<>"'`()[\]]{1,2000})|\*([^*\s][^*\n]*)\*/g;

const inline = (text) => {
  const parts = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, fixed, strong, image, words, target, url, soft] = found;
    if (found.index > from) parts.append(visible(text.slice(from, found.index)));
    from = found.index + all.length;
    if (fixed !== undefined) parts.append(make("code", "", visible(fixed)));
    else if (strong !== undefined) parts.append(make("strong", "", visible(strong)));
    else if (image) parts.append(visible(`image: ${words} (${target})`));
    else if (target !== undefined) parts.append(link(words, target));
    else if (url !== undefined) {
      const end = url.replace(/[.,;:!?]+$/, "");
      parts.append(link(end, end), url.slice(end.length));
    } else parts.append(make("em", "", visible(soft)));
  }
  if (from < text.length) parts.append(visible(text.slice(from)));
  return parts;
};

// The part of Markdown that models use most. Blocks are told line by line; nothing is nested.
const markdown = (text) => {
  const holder = make("div", "text");
  const lines = text.split("\n");
  let open = [];
  const close = () => {
    if (open.length) holder.append(make("p", "", inline(open.join("\n"))));
    open = [];
  };
  let list = null;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const fence = /^\s*(```+|~~~+)/.exec(line);
    if (fence) {
      close();
      list = null;
      const inside = [];
      while (++at < lines.length && !lines[at].trimStart().startsWith(fence[1])) inside.push(lines[at]);
      holder.append(code(inside.join("\n")));
      continue;
    }
    const item = /^\s*(?:([-*+])|\d{1,9}[.)])\s+(.*)$/.exec(line);
    if (item) {
      close();
      const tag = item[1] ? "UL" : "OL";
      if (!list || list.tagName !== tag) holder.append((list = make(tag)));
      list.append(make("li", "", inline(item[2])));
      continue;
    }
    if (list && /^\s+\S/.test(line)) {
      list.lastChild.append("\n", inline(line.trim()));
      continue;
    }
    list = null;
    const head = /^(#{1,6})\s+(.*)$/.exec(line);
    if (head || /^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      close();
      holder.append(head ? make(head[1].length < 3 ? "h3" : "h4", "", inline(head[2])) : make("hr"));
    } else if (line.startsWith(">")) {
      close();
      holder.append(make("blockquote", "", inline(line.replace(/^>\s?/, ""))));
    } else if (!line.trim()) close();
    else open.push(line);
  }
  close();
  return holder;
};

const prose = (text) => shortened(text, (part) => (part.length > 200000 ? make("div", "plain", visible(part)) : markdown(part)));

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const picture = (block) => {
  const { data, mimeType } = block;
  if (typeof data !== "string" || !IMAGES.includes(mimeType) || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) {
    return make("div", "note", `image that is not shown (${plainLine(String(mimeType), 40)})`);
  }
  const node = make("img");
  node.alt = "image of the session";
  node.src = `data:${mimeType};base64,${data}`;
  return node;
};
