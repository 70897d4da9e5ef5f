/* See os/testing/testing.h. */
#include "os/testing/testing.h"

#include "base/testing/testing.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

static X509 *make_certificate(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1,
                               0);
    X509_set_issuer_name(certificate, name);
    X509_set_pubkey(certificate, key);
    X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:localhost");
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    return certificate;
}

static void write_key(const char *key_file, EVP_PKEY *key)
{
    FILE *file = fopen(key_file, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

void testing_write_identity(const char *certificate_file, const char *key_file)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    assert_non_null(key);
    X509 *certificate = make_certificate(key);
    FILE *file = fopen(certificate_file, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    write_key(key_file, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void testing_write_key(const char *key_file, const char *type)
{
    bool is_rsa = strcmp(type, "RSA") == 0;
    EVP_PKEY *key = is_rsa ? EVP_RSA_gen(2048) : EVP_PKEY_Q_keygen(NULL, NULL, type);
    assert_non_null(key);
    write_key(key_file, key);
    EVP_PKEY_free(key);
}
