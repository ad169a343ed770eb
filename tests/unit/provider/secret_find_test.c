/* Which values of an environment and a command line are hidden, and which are not. */

#include "provider/secret_find.h"
#include "support/test.h"

#define HIDDEN(name) "\xC2\xABsecret:" name "\xC2\xBB"

struct found {
  const char *given[4]; /* NULL-ended */
  const char *text, *wanted;
};

static void look(const struct found *cases, size_t count, bool words) {
  static const char *const declared[] = {"PLAIN_NAME", NULL};
  for (size_t i = 0; i < count; i++) {
    struct secrets *s = secrets_new();
    buf_auto_t text = {0};
    if (words)
      secrets_find_in_words(s, cases[i].given);
    else
      secrets_find_in_environment(s, cases[i].given, declared);
    buf_puts(&text, cases[i].text);
    (void)secrets_hide(s, &text);
    assert_string_equal(buf_c(&text), cases[i].wanted);
    secrets_free(s);
  }
}

TEST(of_an_environment) {
  static const struct found cases[] = {
      {{"MY_API_KEY=abcdefgh1"}, "x abcdefgh1", "x " HIDDEN("MY_API_KEY")},
      {{"my_token=abcdefgh1"}, "abcdefgh1", HIDDEN("my_token")},
      {{"DB_PASSWORD=abcdefgh1"}, "abcdefgh1", HIDDEN("DB_PASSWORD")},
      {{"PLAIN_NAME=abcdefgh1"}, "abcdefgh1", HIDDEN("PLAIN_NAME")},
      {{"MODE=ghp_0123456789abcdef"}, "ghp_0123456789abcdef", HIDDEN("MODE")},
      {{"EXTRA_HEADERS=Bearer eyJhbGciOiJIUzI1NiJ9.e30.x"},
       "sent eyJhbGciOiJIUzI1NiJ9.e30.x",
       "sent " HIDDEN("EXTRA_HEADERS")},
      {{"HTTPS_PROXY=http://me:geheim123@proxy:3128/"},
       "no route to http://me:geheim123@proxy:3128/",
       "no route to http://me:" HIDDEN("HTTPS_PROXY") "@proxy:3128/"},
      {{"OPENCODE_CONFIG_CONTENT={\"provider\":{\"m\":{\"options\":{\"apiKey\":\"abcdefgh1\"}}}}"},
       "bad key abcdefgh1",
       "bad key " HIDDEN("OPENCODE_CONFIG_CONTENT")},
      {{"PLAIN_NAME=postgres://me:geheim123@db/x"},
       "no such user: me, geheim123",
       "no such user: me, " HIDDEN("PLAIN_NAME")},
      {{"GOOGLE_CREDENTIALS={\"id\":\"me-and-you\",\"private_key\":\"abcdefgh1\"}"},
       "me-and-you: abcdefgh1",
       "me-and-you: " HIDDEN("GOOGLE_CREDENTIALS")},
      {{"SMTP_PASSWD=abcdefgh1"}, "abcdefgh1", HIDDEN("SMTP_PASSWD")},
      /* what is none */
      {{"MODE=verbose-mode", "PATH=/usr/bin:/bin"},
       "verbose-mode /usr/bin:/bin",
       "verbose-mode /usr/bin:/bin"},
      {{"BASE_URL=http://127.0.0.1:8080/v1"},
       "http://127.0.0.1:8080/v1",
       "http://127.0.0.1:8080/v1"},
      {{"PIN_TOKEN=1234"}, "1234", "1234"}, /* too short to be told from other text */
      {{"no assignment"}, "no assignment", "no assignment"},
      {{NULL}, "text", "text"},
  };
  look(cases, sizeof cases / sizeof cases[0], false);
}

TEST(of_a_command_line) {
  static const struct found cases[] = {
      {{"agent", "--api-key=abcdefgh1"}, "abcdefgh1", HIDDEN("api-key")},
      {{"agent", "--token", "abcdefgh1"}, "abcdefgh1", HIDDEN("token")},
      {{"-c", "providers.mine.api_key=\"abcdefgh1\""},
       "abcdefgh1",
       HIDDEN("providers.mine.api_key")},
      {{"agent", "sk-ant-0123456789abcdef"}, "sk-ant-0123456789abcdef", HIDDEN("argument")},
      {{"-c", "x.base_url=http://u:abcdefgh1@host"}, "abcdefgh1", HIDDEN("x.base_url")},
      /* what is none */
      {{"-c", "x.env_key=MY_LONG_NAME"}, "MY_LONG_NAME", "MY_LONG_NAME"},
      {{"--token", "--verbose-mode"}, "--verbose-mode", "--verbose-mode"},
      {{"--model", "claude-opus-5-5"}, "claude-sonnet-4-5", "claude-sonnet-4-5"},
      {{"--key-file", "/home/me/key.pem"}, "/home/me/key.pem", "/home/me/key.pem"},
      {{"--max-tokens", "12345678"}, "12345678", "12345678"},
  };
  look(cases, sizeof cases / sizeof cases[0], true);
}
