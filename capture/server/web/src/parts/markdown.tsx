// Markdown as elements. A link shows its host when its words do not.

import { useMemo } from "preact/hooks";
import { blocks, type Block, type Inline } from "../text/markdown";
import { visible } from "../text/visible";
import { CopyButton } from "./copy";
import { Shown } from "./text";

/** A text in Markdown. */
export function Markdown({ text }: { text: string }) {
  const found = useMemo(() => blocks(text), [text]);
  return (
    <div class="markdown">
      <Blocks blocks={found} />
    </div>
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
  switch (block.kind) {
    case "paragraph":
      return (
        <p>
          <Inlines inside={block.inside} />
        </p>
      );
    case "heading":
      // The page's own headings are above; a heading of an agent is only text.
      return (
        <p class={`heading h${Math.min(block.level, 4)}`}>
          <Inlines inside={block.inside} />
        </p>
      );
    case "code":
      return (
        <div class="code-block">
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

function InlineView({ inline }: { inline: Inline }) {
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
          [image: <Shown text={inline.text || inline.href} />]
        </span>
      );
    case "link": {
      const label = inline.inside.map((part) => (part.kind === "text" ? part.text : "")).join("");
      return (
        <a href={inline.href} target="_blank" rel="noopener noreferrer" title={inline.href}>
          <Inlines inside={inline.inside} />
          {!label.includes(inline.host) && <span class="host"> ({inline.host})</span>}
        </a>
      );
    }
  }
}
