import { expect, test } from 'vitest';
import { findJson } from '../../../../src/kernel/providers/text/found-calls.js';

/** Arguments as models write them, and the JSON that they mean; null where that would be a guess. */
test.each<readonly [name: string, written: string, meant: string | null]>([
  ['a comma at the end', '{"a":1,}', '{"a":1}'],
  ['a comma at the end of a list', '[1,2,]', '[1,2]'],
  ['a comma at the beginning', '{,"a":1}', '{"a":1}'],
  ['two commas', '{"a":null,,"b":1}', '{"a":null,"b":1}'],
  ['no comma between lines', '{"a":1\n"b":2}', '{"a":1,"b":2}'],
  ['no comma in one line', '{"a":1 "b":2}', null],
  ['single quotes', "{'a':'b'}", '{"a":"b"}'],
  ['backticks', '{"a":`b`}', '{"a":"b"}'],
  ['quotes of typesetters', '{“a”:“b”}', '{"a":"b"}'],
  ['a quote inside a string', '{"a":"say "hi""}', null],
  ['no quotes around a name', '{a:1}', '{"a":1}'],
  ['no quotes around a text', '{"a":b c}', null],
  ['a comment', '{"a":1 /* one */}', '{"a":1}'],
  ['a comment up to the end of the line', '{"a":1 // one\n}', '{"a":1}'],
  ['a line break and a tab in a string', '{"a":"x\ny\tz"}', '{"a":"x\\ny\\tz"}'],
  ['an escape that JSON does not know', '{"a":"say \\d"}', '{"a":"say \\\\d"}'],
  ['an escaped line break between values', '{"a":\\n[1]}', '{"a":[1]}'],
  ['the constants of Python', '{"a":True,"b":None,"c":False}', '{"a":true,"b":null,"c":false}'],
  ['a constant of JavaScript', '{"a":undefined}', '{"a":null}'],
  ['a number that is none', '{"a":NaN}', null],
  ['a number with a zero before it', '{"a":05}', null],
  ['a number beyond those of JavaScript', '{"n":12345678901234567890}', '{"n":12345678901234567890}'],
  ['the object twice', '{"a":1}{"a":1}', '{"a":1}'],
  ['a bracket too many', '{"a":1}}', '{"a":1}'],
  ['a bracket that is missing', '{"a":1', null],
  ['a bracket that is missing inside', '{"a":[1,2}', null],
  ['a string without its end', '{"a":"b}', null],
  ['an object that breaks off', '{"a":', null],
  ['an object that is escaped', '{\\"a\\":1}', null],
])('JSON is mended where only one reading is possible: %s', (_name, written, meant) => {
  expect(findJson(written)?.json ?? null).toBe(meant);
});
