/* describe_words.h - every word of a rendering, in each language. */
#ifndef SEGUE_RENDER_DESCRIBE_WORDS_H
#define SEGUE_RENDER_DESCRIBE_WORDS_H

#include "render/describe.h"
#include "schema/support.h"

/* Each in English and in Japanese, whose width clang-format does not know; {} is an argument, see
 * describe_say. */
/* clang-format off */
#define DESCRIBE_WORDS(WORD) \
  WORD(RETURN, "Return one JSON {} of the structure below. " \
       "Write JSON only: no other text, no code fence.", \
       "次の構造の JSON の{}を一つだけ返してください。" \
       "JSON だけを書き、ほかの文章やコードフェンスは付けないでください。") \
  WORD(RETURN_PLAIN, "Return one JSON {}. Write JSON only: no other text, no code fence.", \
       "JSON の{}を一つだけ返してください。" \
       "JSON だけを書き、ほかの文章やコードフェンスは付けないでください。") \
  WORD(RETURN_SCHEMA, "Return one JSON {} that fits the JSON Schema below. " \
       "Write JSON only: no other text, no code fence. " \
       "Do not repeat the schema.", \
       "次の JSON Schema に合う JSON の{}を一つだけ返してください。" \
       "JSON だけを書き、ほかの文章やコードフェンスは付けないでください。" \
       "スキーマを繰り返さないでください。") \
  WORD(NULL_ONLY, "Use null only where it is allowed: {}.", "null を使えるのは次だけです: {}。") \
  WORD(NULL_MARKED, "Use null only where the type says \"or null\".", \
       "null を使えるのは、型に「または null」とある所だけです。") \
  WORD(NULL_TYPED, "Use null only where it is allowed.", \
       "null は許されている所だけで使ってください。") \
  WORD(NULL_NEVER, "Do not use null.", "null は使わないでください。") \
  WORD(NULL_WHOLE, "the whole answer", "回答全体") \
  WORD(MAY_LEAVE_OUT, "Leave an optional field out when its value is not known.", \
       "任意のフィールドは、値が分からなければ省いてください。") \
  WORD(NO_INVENTING, "Do not invent anything.", "何も作り出さないでください。") \
  WORD(EXAMPLE, "An answer has this form; its values are placeholders:", \
       "回答は次の形です。値は仮のものです:") \
  WORD(REQUIRED, "required", "必須") \
  WORD(OPTIONAL, "optional", "任意") \
  WORD(WHOLE, "the answer", "回答") \
  WORD(EACH_ITEM, "each item", "各要素") \
  WORD(EACH_FURTHER_ITEM, "each further item", "それ以降の各要素") \
  WORD(ITEM, "item {}", "要素 {}") \
  WORD(ANY_OTHER_FIELD, "any other field", "ほかの各フィールド") \
  WORD(ANY_OTHER_ITEM, "any other item", "ほかの各要素") \
  WORD(FIELD_MATCHING, "each field whose name matches {}", "名前が {} に一致する各フィールド") \
  WORD(FIELD_NAMES, "each field name", "各フィールド名") \
  WORD(CONTAINED, "contained item", "含む要素") \
  WORD(FORM, "form {}", "形 {}") \
  WORD(FORMS_ANY, "at least one of these forms", "次の形の少なくとも一つ") \
  WORD(FORMS_ONE, "exactly one of these forms", "次の形のちょうど一つ") \
  WORD(NOT, "not", "次であってはならない") \
  WORD(IF, "if", "もし") \
  WORD(THEN, "then", "ならば") \
  WORD(ELSE, "else", "でなければ") \
  WORD(WITH_FIELD, "if {} is present", "{} があるとき") \
  WORD(SAME_AS, "same structure as {}", "{} と同じ構造") \
  WORD(OR, " or ", " または ") \
  WORD(OBJECT, "object", "オブジェクト") \
  WORD(ARRAY, "array", "配列") \
  WORD(STRING, "string", "文字列") \
  WORD(NUMBER, "number", "数値") \
  WORD(INTEGER, "integer", "整数") \
  WORD(BOOLEAN, "boolean", "真偽値") \
  WORD(NULL, "null", "null") \
  WORD(VALUE, "value", "値") \
  WORD(ANY_VALUE, "any value", "任意の値") \
  WORD(NOTHING, "no value is possible", "ありうる値なし") \
  WORD(ONE_OF, "one of: {}", "次のいずれか: {}") \
  WORD(CONST, "always {}", "常に {}") \
  WORD(MULTIPLE_OF, "multiple of {}", "{} の倍数") \
  WORD(MIN_LENGTH, "at least {} {character|characters}", "{} 文字以上") \
  WORD(MAX_LENGTH, "at most {} {character|characters}", "{} 文字以下") \
  WORD(PATTERN, "pattern: {}", "正規表現: {}") \
  WORD(FORMAT, "format: {}", "書式: {}") \
  WORD(ENCODING, "encoding: {}", "符号化: {}") \
  WORD(MEDIA_TYPE, "media type: {}", "メディアタイプ: {}") \
  WORD(MIN_ITEMS, "at least {} {item|items}", "要素 {} 個以上") \
  WORD(MAX_ITEMS, "at most {} {item|items}", "要素 {} 個以下") \
  WORD(UNIQUE, "no two items equal", "等しい要素なし") \
  WORD(NO_OTHER_ITEMS, "no other items", "ほかの要素なし") \
  WORD(NO_ITEMS, "no items", "要素なし") \
  WORD(MIN_CONTAINS, "at least {} contained {item|items}", "含む要素 {} 個以上") \
  WORD(MAX_CONTAINS, "at most {} contained {item|items}", "含む要素 {} 個以下") \
  WORD(CONTAINS, "contained item: {}", "含む要素: {}") \
  WORD(MIN_FIELDS, "at least {} {field|fields}", "フィールド {} 個以上") \
  WORD(MAX_FIELDS, "at most {} {field|fields}", "フィールド {} 個以下") \
  WORD(NO_OTHER_FIELDS, "no other fields", "ほかのフィールドなし") \
  WORD(NO_FIELD_MATCHING, "no field whose name matches {}", "名前が {} に一致するフィールドなし") \
  WORD(MUST_HAVE, "must have {}", "{} が必要") \
  WORD(WITH_MUST_HAVE, "must have {}", "{} も必要") \
  WORD(WITH_FORBIDDEN, "must not have {}", "{} は不可") \
  WORD(FORBIDDEN, "must not have {}", "{} は不可")
/* clang-format on */

enum word {
#define DESCRIBE_WORD(id, english, japanese) WORD_##id,
  DESCRIBE_WORDS(DESCRIBE_WORD)
#undef DESCRIBE_WORD
      WORD_COUNT
};

/* A further language: terse English, where a line is a comment and not a sentence. */
enum { DESCRIBE_TERSE = DESCRIBE_JAPANESE + 1 };

/* Adds the words to `out`; {} in them is `argument`, and of {one|many} the first if `argument` is
 * "1". */
void describe_say(enum describe_language language, enum word word, const char *argument,
                  struct buf *out);

#endif
