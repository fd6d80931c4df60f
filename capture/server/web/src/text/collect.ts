/** Values by key, in the order of their first appearance. */
export function groupBy<Key, Value>(values: Iterable<Value>, key: (value: Value) => Key): Map<Key, Value[]> {
  const groups = new Map<Key, Value[]>();
  for (const value of values) {
    const of = key(value);
    const group = groups.get(of);
    if (group === undefined) groups.set(of, [value]);
    else group.push(value);
  }
  return groups;
}
