/* Hashes with SHA-256 and writes the digest in hex. */
#include "base/sha256.h"

/* Declares the plain functions. To set up a digest that is fetched by name takes longer than to
 * hash a short text, and a log hashes many; it would also draw in the whole library. */
#define OPENSSL_API_COMPAT 10100
#include <openssl/sha.h>
#include <string.h>

void sha256_raw(const void *a, size_t a_bytes, const void *b, size_t b_bytes,
                unsigned char out[32]) {
  SHA256_CTX ctx;
  SHA256_Init(&ctx);
  SHA256_Update(&ctx, a, a_bytes);
  SHA256_Update(&ctx, b, b_bytes);
  SHA256_Final(out, &ctx);
}

void sha256_hex(const void *a, size_t a_bytes, const void *b, size_t b_bytes,
                char out[SHA256_HEX]) {
#define ROW(h)                                                                                     \
  h "0" h "1" h "2" h "3" h "4" h "5" h "6" h "7" h "8" h "9" h "a" h "b" h "c" h "d" h "e" h "f"
  static const char pairs[] = ROW("0") ROW("1") ROW("2") ROW("3") ROW("4") ROW("5") ROW("6")
      ROW("7") ROW("8") ROW("9") ROW("a") ROW("b") ROW("c") ROW("d") ROW("e") ROW("f");
#undef ROW
  unsigned char raw[32];
  sha256_raw(a, a_bytes, b, b_bytes, raw);
  for (int i = 0; i < 32; i++)
    memcpy(out + 2 * i, pairs + 2 * raw[i], 2);
  out[64] = '\0';
}
