/* Declared variables' values never stay in a text. */

#include "provider/redact.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"REDACT_TEST_KEY", "REDACT_TEST_PIN", "REDACT_TEST_UNSET",
                                    NULL};

TEST(test_replaces) {
  setenv("REDACT_TEST_KEY", "sk-12345678", 1);
  setenv("REDACT_TEST_PIN", "1234", 1);
  struct secrets *s = secrets_new();
  secrets_add_env(s, names);
  DATA_ROWS("provider/redact/replaces.yaml", c, in, out, count) {
    buf_auto_t text = {0};
    buf_puts(&text, c.in);
    assert_int_equal(secrets_hide(s, &text), (size_t)data_number(c.count));
    assert_string_equal(buf_c(&text), c.out);
    assert_int_equal(secrets_hide(s, &text), 0);
  }
  secrets_free(s);
}

TEST(test_no_names) {
  struct secrets *s = secrets_new();
  buf_auto_t text = {0};
  secrets_add_env(s, NULL);
  buf_puts(&text, "sk-12345678");
  assert_true(secrets_are_empty(s));
  assert_int_equal(secrets_hide(s, &text), 0);
  secrets_free(s);
}

static void encode(const unsigned char *p, size_t n, const char *digits, struct buf *out) {
  for (size_t i = 0; i < n; i += 3) {
    unsigned v = (unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0) |
                 (i + 2 < n ? p[i + 2] : 0u);
    size_t chars = n - i >= 3 ? 4 : n - i + 1;
    for (size_t k = 0; k < chars; k++)
      buf_putc(out, digits[(v >> (18 - 6 * k)) & 63]);
  }
}

TEST(test_encoded) {
  static const char *const digits[] = {
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"};
  static const char value[] = "s\xFF?/secret+value=9";
  struct secrets *s = secrets_new();
  secrets_add(s, "K", (struct str){value, sizeof value - 1});
  for (size_t before = 0; before < 7; before++)
    for (size_t after = 0; after < 4; after++)
      for (size_t d = 0; d < 2; d++) {
        buf_auto_t plain = {0}, text = {0};
        buf_append(&plain, "useruser", before);
        buf_puts(&plain, value);
        buf_append(&plain, "tail", after);
        encode((const unsigned char *)plain.p, plain.n, digits[d], &text);
        assert_int_equal(secrets_hide(s, &text), 1);
        assert_non_null(strstr(buf_c(&text), "\xC2\xABsecret:K\xC2\xBB"));
        assert_true(text.n < 14 + 24); /* at most a character or two of it are left */
      }
  buf_auto_t url = {0};
  buf_puts(&url, "a=s%FF%3F%2Fsecret%2Bvalue%3D9&b=s%ff%3f%2fsecret%2bvalue%3d9");
  assert_int_equal(secrets_hide(s, &url), 2);
  assert_string_equal(buf_c(&url), "a=\xC2\xABsecret:K\xC2\xBB&b=\xC2\xABsecret:K\xC2\xBB");
  secrets_free(s);
}

/* Encoders differ in which bytes they escape. */
TEST(test_spelled) {
  struct secrets *s = secrets_new();
  secrets_add(s, "#", STR("k/ey+one%two"));
  DATA_ROWS("provider/redact/spelled.yaml", row, in, out)
    for (size_t piece = 1; piece < 40; piece++) {
      const char *in = row.in;
      AUTO(redactor_deinit) struct redactor r;
      buf_auto_t out = {0}, wanted = {0};
      redactor_init(&r, s);
      for (size_t at = 0, n = strlen(in); at < n; at += piece)
        redactor_push(&r, (struct str){in + at, n - at < piece ? n - at : piece}, &out);
      redactor_flush(&r, &out);
      for (const char *c = row.out; *c != '\0'; c++)
        buf_printf(&wanted, *c == '#' ? "\xC2\xABsecret:%c\xC2\xBB" : "%c", *c);
      assert_string_equal(buf_c(&out), buf_c(&wanted));
    }
  secrets_free(s);
}

static const char long_key[] = "sk-proj-Zz0+9/aB_c-dE1234567890fghijklmnopqrstuvwxyzABCDEFGHIJK";

static void redacts_to(const struct secrets *s, const char *in, const char *wanted) {
  for (size_t piece = 1; piece < 90; piece++) {
    AUTO(redactor_deinit) struct redactor r;
    buf_auto_t out = {0};
    redactor_init(&r, s);
    for (size_t at = 0, n = strlen(in); at < n; at += piece)
      redactor_push(&r, (struct str){in + at, n - at < piece ? n - at : piece}, &out);
    redactor_flush(&r, &out);
    assert_string_equal(buf_c(&out), wanted);
  }
}

/* base64 wraps at 76 columns, xxd -p at 60, od at 16 bytes; and all of it may stand in JSON. */
TEST(test_wrapped) {
  static const char *const breaks[] = {"\n", "\r\n", "\n  ", "\\n", "\\r\\n", "\\\\n"};
  struct secrets *s = secrets_new();
  secrets_add(s, "K", (struct str){long_key, sizeof long_key - 1});
  for (size_t b = 0; b < sizeof breaks / sizeof breaks[0]; b++)
    for (size_t before = 0; before < 78; before += 7) {
      buf_auto_t plain = {0}, encoded = {0}, text = {0}, hex = {0};
      for (size_t i = 0; i < before; i++)
        buf_putc(&plain, (char)('a' + i % 26));
      buf_puts(&plain, long_key);
      buf_puts(&plain, "\n");
      encode((const unsigned char *)plain.p, plain.n,
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", &encoded);
      for (size_t i = 0; i < encoded.n; i++)
        buf_printf(&text, "%s%c", i > 0 && i % 76 == 0 ? breaks[b] : "", encoded.p[i]);
      assert_int_equal(secrets_hide(s, &text), 1);
      assert_true(text.n < before * 4 / 3 + 32); /* at most a character or two of it are left */
      for (size_t i = 0; i < plain.n; i++)
        buf_printf(&hex, "%s%02x", i > 0 && i % 30 == 0 ? breaks[b] : "",
                   (unsigned char)plain.p[i]);
      assert_int_equal(secrets_hide(s, &hex), 1);
      assert_true(hex.n < before * 2 + 4 * strlen(breaks[b]) + 20);
    }
  secrets_free(s);
}

TEST(test_hex) {
  struct secrets *s = secrets_new();
  secrets_add(s, "K", STR("secret one"));
  DATA_ROWS("provider/redact/hex.yaml", c, in, out)
    redacts_to(s, c.in, c.out);
  secrets_free(s);
}

/* However a stream is cut, it comes out as the whole text does. */
TEST(test_stream) {
  static const char text[] =
      "sk-sk-12345678 sk-1234567 aasaasb aasaasbb sk-12345678sk-12345678 c2stMTIzNDU2Nzg= sk-1234";
  struct secrets *s = secrets_new();
  buf_auto_t whole = {0};
  secrets_add(s, "A", STR("sk-12345678"));
  secrets_add(s, "B", STR("aasaasbb"));
  secrets_add(s, "LONG", STR("sk-12345678sk-12345678"));
  buf_puts(&whole, text);
  assert_int_equal(secrets_hide(s, &whole), 4);
  for (size_t piece = 1; piece < sizeof text; piece++) {
    AUTO(redactor_deinit) struct redactor r;
    buf_auto_t out = {0};
    redactor_init(&r, s);
    for (size_t at = 0; at < sizeof text - 1; at += piece)
      redactor_push(
          &r, (struct str){text + at, sizeof text - 1 - at < piece ? sizeof text - 1 - at : piece},
          &out);
    redactor_flush(&r, &out);
    assert_string_equal(buf_c(&out), buf_c(&whole));
  }
  secrets_free(s);
}
