/* Keys and certificates for tests; each test makes its own. */
#ifndef TRESTLE_OS_TESTING_TESTING_H
#define TRESTLE_OS_TESTING_TESTING_H

/* PEM files: a certificate for "localhost" that is its own authority, and its key. */
void testing_write_identity(const char *certificate_file, const char *key_file);

/* A key of a type that OpenSSL knows, without a certificate. */
void testing_write_key(const char *key_file, const char *type);

#endif
