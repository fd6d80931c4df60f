// Questions of an agent, answered in place.

import type { Signal } from "@preact/signals";
import { Shown } from "../parts/text";
import type { Question } from "./request";

/** The chosen options of a question, and the text typed in addition. */
export type Choice = { chosen: string[]; other: string };
/** Choices by the number of the question. */
export type Choices = Record<number, Choice>;

/** The answers in the API's format; `null` while a question is unanswered. */
export function answers(questions: Question[], choices: Choices): Record<string, string> | null {
  const found: Record<string, string> = {};
  for (const [index, { question, several }] of questions.entries()) {
    const { chosen = [], other = "" } = choices[index] ?? {};
    const typed = other.trim();
    const all = several ? [...chosen, ...(typed === "" ? [] : [typed])] : typed === "" ? chosen.slice(0, 1) : [typed];
    if (all.length === 0) return null;
    found[question] = all.join(", ");
  }
  return found;
}

/** The form. */
export function Questions({ id, questions, choices, disabled }: { id: string; questions: Question[]; choices: Signal<Choices>; disabled: boolean }) {
  const set = (index: number, change: Partial<Choice>): void => {
    const before = choices.value[index] ?? { chosen: [], other: "" };
    choices.value = { ...choices.value, [index]: { ...before, ...change } };
  };
  return (
    <div class="questions">
      {questions.map(({ question, options, several, header }, index) => {
        const { chosen, other } = choices.value[index] ?? { chosen: [], other: "" };
        return (
          <fieldset key={index} disabled={disabled}>
            <legend>
              {header !== null && (
                <span class="chip">
                  <Shown text={header} strictness="exact" />
                </span>
              )}
              <Shown text={question} strictness="exact" />
            </legend>
            {options.map(({ label, description }, option) => (
              <label key={option} class="option">
                <input
                  type={several ? "checkbox" : "radio"}
                  name={`${id}-${index}`}
                  checked={chosen.includes(label) && (several || other === "")}
                  onChange={(event) => {
                    const on = event.currentTarget.checked;
                    if (several) set(index, { chosen: on ? [...chosen, label] : chosen.filter((one) => one !== label) });
                    else set(index, { chosen: [label], other: "" });
                  }}
                />
                <span>
                  <Shown text={label} strictness="exact" />
                  {description !== null && (
                    <span class="option-about">
                      <Shown text={description} strictness="exact" />
                    </span>
                  )}
                </span>
              </label>
            ))}
            <label class="field">
              <span>{options.length > 0 ? "Another answer" : "Answer"}</span>
              <input value={other} onInput={(event) => set(index, { other: event.currentTarget.value })} />
            </label>
          </fieldset>
        );
      })}
    </div>
  );
}
