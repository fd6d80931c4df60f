// Markdown as elements. A link shows its host if its text does not contain it. If the user decides about the text,
// nothing is hidden: addresses, titles and the words after a fence are shown too.

import { createContext } from "preact";
import { useContext, useMemo } from "preact/hooks";
import { type Block, blocks, type Inline } from "../text/markdown";
import { visible } from "../text/visible";
import { CopyButton } from "./copy";
import { Shown } from "./text";

/** Whether nothing of the text may be hidden. */
const Whole = createContext(false);

/** A Markdown text. `whole`: includes the parts that Markdown normally hides. */
export function Markdown({ text, whole = false }: { text: string; whole?: boolean }) {
  const found = useMemo(() => blocks(text), [text]);
  return (
    <Whole.Provider value={whole}>
      <div class="markdown">
        <Blocks blocks={found} />
      </div>
    </Whole.Provider>
  );
}

function Blocks({ blocks }: { blocks: Block[] }) {
  return (
    <>
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} />
      ))}
    </>
  );
}

function BlockView({ block }: { block: Block }) {
  const whole = useContext(Whole);
  switch (block.kind) {
    case "paragraph":
      return (
        <p>
          <Inlines inside={block.inside} />
        </p>
      );
    case "heading":
      // Headings of an agent are plain text, below the page's own headings.
      return (
        <p class={`heading h${Math.min(block.level, 4)}`}>
          <Inlines inside={block.inside} />
        </p>
      );
    case "code":
      return (
        <div class="code-block">
          {whole && <HiddenWords words={block.language} />}
          <pre tabIndex={0} aria-label={block.language === "" ? "code" : `code, ${visible(block.language)}`}>
            <code>
              <Shown text={block.text} />
            </code>
          </pre>
          <CopyButton text={block.text} label="Copy code" />
        </div>
      );
    case "quote":
      return (
        <blockquote>
          <Blocks blocks={block.blocks} />
        </blockquote>
      );
    case "list": {
      const items = block.items.map((item, index) => (
        <li key={index} class={item.done === null ? "" : "task"}>
          {item.done !== null && <span class="task-mark">{item.done ? "☑" : "☐"}</span>}
          <Blocks blocks={item.blocks} />
        </li>
      ));
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="table">
          <table>
            <thead>
              <tr>
                {block.head.map((cell, index) => (
                  <th key={index} scope="col">
                    <Inlines inside={cell} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column}>
                      <Inlines inside={cell} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr />;
  }
}

function Inlines({ inside }: { inside: Inline[] }) {
  return (
    <>
      {inside.map((inline, index) => (
        <InlineView key={index} inline={inline} />
      ))}
    </>
  );
}

/** Parts of a text that Markdown does not display. */
function HiddenWords({ words }: { words: string }) {
  if (words === "") return null;
  return (
    <span class="hidden-words">
      <Shown text={words} strictness="exact" />
    </span>
  );
}

const words = (...parts: string[]): string => parts.filter((part) => part !== "").join(" · ");

function InlineView({ inline }: { inline: Inline }) {
  const whole = useContext(Whole);
  switch (inline.kind) {
    case "text":
      return <Shown text={inline.text} />;
    case "code":
      return (
        <code>
          <Shown text={inline.text} />
        </code>
      );
    case "strong":
      return (
        <strong>
          <Inlines inside={inline.inside} />
        </strong>
      );
    case "emphasis":
      return (
        <em>
          <Inlines inside={inline.inside} />
        </em>
      );
    case "strike":
      return (
        <s>
          <Inlines inside={inline.inside} />
        </s>
      );
    case "image":
      return (
        <span class="image-text">
          [image: <Shown text={inline.text || inline.href} />
          {whole && <HiddenWords words={words(inline.text === "" ? "" : inline.href, inline.title)} />}]
        </span>
      );
    case "link": {
      const label = inline.inside.map((part) => (part.kind === "text" ? part.text : "")).join("");
      return (
        <a href={inline.href} target="_blank" rel="noopener noreferrer" title={inline.href}>
          <Inlines inside={inline.inside} />
          {!whole && !label.includes(inline.host) && <span class="host"> ({inline.host})</span>}
          {whole && <HiddenWords words={words(label === inline.href ? "" : inline.href, inline.title)} />}
        </a>
      );
    }
  }
}
