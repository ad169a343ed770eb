/* sha256.h - SHA-256 of bytes as 64 lower-case hex characters (FIPS 180-4, through OpenSSL). */
#ifndef SEGUE_BASE_SHA256_H
#define SEGUE_BASE_SHA256_H

#include <stddef.h>

enum { SHA256_HEX = 65 }; /* 64 characters and the NUL */

/* Hash of a then b (either may be empty). */
void sha256_hex(const void *a, size_t a_bytes, const void *b, size_t b_bytes, char out[SHA256_HEX]);
/* The same as 32 raw bytes. */
void sha256_raw(const void *a, size_t a_bytes, const void *b, size_t b_bytes,
                unsigned char out[32]);

#endif
