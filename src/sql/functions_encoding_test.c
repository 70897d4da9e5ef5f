/* Encodings and digests: functions_encoding.c. Digests are those of RFC 1321 and FIPS 180;
 * fingerprints of longer texts are what FarmHash's own library gives. */
#include "sql/expression_testing.h"

#define ERROR(words) "OUT_OF_RANGE: " words
#define NOT_BASE32   ERROR("Failed to decode invalid base32 string")
#define NOT_BASE64   ERROR("Failed to decode invalid base64 string")

static void bytes_are_written_as_text(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"TO_HEX(b'\\x00\\x01\\x02\\x03\\xAA\\xEE\\xEF\\xFF')", "\"00010203aaeeefff\"", "hex"},
        {"TO_HEX(b'foobar')", "\"666f6f626172\"", "hex"},
        {"TO_HEX(b'')", "\"\"", "empty"},
        {"TO_HEX(NULL)", "NULL", "NULL"},
        {"FROM_HEX('00010203aaeeefff')", "b\"\\x00\\x01\\x02\\x03\\xaa\\xee\\xef\\xff\"", "hex"},
        {"FROM_HEX('0AF')", "b\"\\x00\\xaf\"", "odd: a 0 before it"},
        {"FROM_HEX('f')", "b\"\\x0f\"", "one digit"},
        {"FROM_HEX('aAfF')", "b\"\\xaa\\xff\"", "in any case"},
        {"FROM_HEX('')", "b\"\"", "empty"},
        {"FROM_HEX('0g')",
         ERROR("Failed to decode invalid hexadecimal string due to character at position 2: g"),
         "no digit"},
        {"FROM_HEX('é')",
         ERROR("Failed to decode invalid hexadecimal string due to character at position 1: é"),
         "no ASCII"},
        {"SAFE.FROM_HEX('x')", "NULL", "SAFE"},
        {"FROM_HEX(NULL)", "NULL", "NULL"},
        {"TO_BASE32(b'abcde\\xFF')", "\"MFRGGZDF74======\"", "the documentation's"},
        {"TO_BASE32(b'')", "\"\"", "RFC 4648"},
        {"TO_BASE32(b'f')", "\"MY======\"", "RFC 4648"},
        {"TO_BASE32(b'fo')", "\"MZXQ====\"", "RFC 4648"},
        {"TO_BASE32(b'foo')", "\"MZXW6===\"", "RFC 4648"},
        {"TO_BASE32(b'foob')", "\"MZXW6YQ=\"", "RFC 4648"},
        {"TO_BASE32(b'fooba')", "\"MZXW6YTB\"", "RFC 4648"},
        {"TO_BASE32(b'foobar')", "\"MZXW6YTBOI======\"", "RFC 4648"},
        {"FROM_BASE32('MFRGGZDF74======')", "b\"abcde\\xff\"", "the documentation's"},
        {"FROM_BASE32('')", "b\"\"", "RFC 4648"},
        {"FROM_BASE32('MY======')", "b\"f\"", "RFC 4648"},
        {"FROM_BASE32('MZXQ====')", "b\"fo\"", "RFC 4648"},
        {"FROM_BASE32('MZXW6===')", "b\"foo\"", "RFC 4648"},
        {"FROM_BASE32('MZXW6YQ=')", "b\"foob\"", "RFC 4648"},
        {"FROM_BASE32('MZXW6YTB')", "b\"fooba\"", "RFC 4648"},
        {"FROM_BASE32('MZXW6YQ')", "b\"foob\"", "without padding"},
        {"FROM_BASE32('M')", NOT_BASE32, "less than a byte"},
        {"FROM_BASE32('my======')", NOT_BASE32, "capitals only"},
        {"FROM_BASE32('M1======')", NOT_BASE32, "no digit"},
        {"FROM_BASE32('MY=====')", NOT_BASE32, "padding of no whole group"},
        {"FROM_BASE32('========')", NOT_BASE32, "nothing but padding"},
        {"FROM_BASE32(NULL)", "NULL", "NULL"},
        {"TO_BASE64(b'\\377\\340')", "\"/+A=\"", "the documentation's"},
        {"TO_BASE64(b'')", "\"\"", "RFC 4648"},
        {"TO_BASE64(b'f')", "\"Zg==\"", "RFC 4648"},
        {"TO_BASE64(b'fo')", "\"Zm8=\"", "RFC 4648"},
        {"TO_BASE64(b'foo')", "\"Zm9v\"", "RFC 4648"},
        {"TO_BASE64(b'foob')", "\"Zm9vYg==\"", "RFC 4648"},
        {"TO_BASE64(b'foobar')", "\"Zm9vYmFy\"", "RFC 4648"},
        {"FROM_BASE64('/+A=')", "b\"\\xff\\xe0\"", "the documentation's"},
        {"FROM_BASE64('')", "b\"\"", "empty"},
        {"FROM_BASE64('Zg==')", "b\"f\"", "RFC 4648"},
        {"FROM_BASE64('Zm9vYg==')", "b\"foob\"", "RFC 4648"},
        {"FROM_BASE64('Zm9vYmFy')", "b\"foobar\"", "RFC 4648"},
        {"FROM_BASE64('Zg')", "b\"f\"", "without padding"},
        {"FROM_BASE64('Zg=')", NOT_BASE64, "padding of no whole group"},
        {"FROM_BASE64('====')", NOT_BASE64, "nothing but padding"},
        {"FROM_BASE64('Z')", NOT_BASE64, "less than a byte"},
        {"FROM_BASE64('_-A=')", NOT_BASE64, "the other alphabet"},
        {"FROM_BASE64('Z=g=')", NOT_BASE64, "padding in the middle"},
        {"FROM_BASE64('Zg\\x00=')", NOT_BASE64, "a zero"},
        {"SAFE.FROM_BASE64('*')", "NULL", "SAFE"},
        {"FROM_BASE64(NULL)", "NULL", "NULL"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void digests_are_known(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"TO_HEX(MD5(''))", "\"d41d8cd98f00b204e9800998ecf8427e\"", "empty"},
        {"TO_HEX(MD5('abc'))", "\"900150983cd24fb0d6963f7d28e17f72\"", "RFC 1321"},
        {"TO_HEX(SHA1(''))", "\"da39a3ee5e6b4b0d3255bfef95601890afd80709\"", "empty"},
        {"TO_HEX(SHA1('abc'))", "\"a9993e364706816aba3e25717850c26c9cd0d89d\"", "FIPS 180"},
        {"TO_HEX(SHA256(b'abc'))",
         "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"", "FIPS 180"},
        {"TO_HEX(SHA512('abc'))",
         "\"ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
         "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f\"",
         "FIPS 180"},
        {"MD5('é') = MD5(b'é')", "true", "of a STRING: its UTF-8"},
        {"LENGTH(SHA256(''))", "32", "bytes"},
        {"MD5(NULL)", "NULL", "NULL"},
        {"SHA1(CAST(NULL AS BYTES))", "NULL", "NULL"},
        {"FARM_FINGERPRINT('alphabet')", "-2427165924636348523", "the documentation's"},
        {"FARM_FINGERPRINT(CONCAT('1', 'foo', 'true'))", "-1541654101129638711",
         "the documentation's"},
        {"FARM_FINGERPRINT('')", "-7286425919675154353", "empty"},
        {"FARM_FINGERPRINT('é') = FARM_FINGERPRINT(b'é')", "true", "of a STRING: its UTF-8"},
        {"FARM_FINGERPRINT(NULL)", "NULL", "NULL"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 1))", "-3247774798456978881",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 3))", "8347415407982900060",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 4))", "-8963627390303783289",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 7))", "2092326130583504517",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 8))", "7926118692302350582",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 9))", "5460912367792631725",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 15))", "8973211576868890572",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 16))", "6105018409752412263",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 17))", "-6422696535518490038",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 31))", "1777465530067516621",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 32))", "3729378876534026706",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 33))", "902314745789161908",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 48))", "4023614277736839402",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 63))", "2856521526392566073",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 64))", "6627120467490183119",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 65))", "-2060107763351623056",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 127))", "-8949485731168692345",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 128))", "6043435570480796515",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 129))", "6500491320754625318",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 191))", "6560799748239625443",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 192))", "8278044526019785656",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 193))", "-1302168466033628911",
         "a length at the edge of a formula"},
        {"FARM_FINGERPRINT(LEFT(REPEAT('0123456789abcdefghij', 60), 1000))", "3052790505041513782",
         "a length at the edge of a formula"},
    };
    CHECK_EXPRESSIONS(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_written_as_text),
        cmocka_unit_test(digests_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
