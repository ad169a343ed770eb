/* SHA-256 against the vectors of FIPS 180-4, and in two halves. */
#include "base/sha256.h"

#include "base/err.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *text, *hex;
} cases[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

TEST(vectors_whole_and_split) {
  char hex[SHA256_HEX];
  unsigned char raw[32];
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    size_t n = strlen(cases[i].text);
    for (size_t at = 0; at <= n; at++) {
      sha256_hex(cases[i].text, at, cases[i].text + at, n - at, hex);
      assert_string_equal(hex, cases[i].hex);
    }
    sha256_hex(cases[i].text, n, NULL, 0, hex);
    assert_string_equal(hex, cases[i].hex);
    sha256_raw(NULL, 0, cases[i].text, n, raw);
    for (size_t k = 0; k < sizeof raw; k++) {
      char two[3] = {cases[i].hex[2 * k], cases[i].hex[2 * k + 1], '\0'};
      assert_int_equal(raw[k], strtoul(two, NULL, 16));
    }
  }
}

TEST(a_million_bytes) {
  char hex[SHA256_HEX], *text = malloc(1000000);
  memset(text, 'a', 1000000);
  sha256_hex(text, 1000000, "", 0, hex);
  assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  free(text);
}
