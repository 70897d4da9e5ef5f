/* How keys begin: each form is found, and what only resembles it is not. */
#include "advisor/testing/testing.h"

/* splitmix64 by Steele, Lea and Flood: numbers that look random, the same each time. */
static uint64_t scatter(uint64_t number)
{
    number += 0x9e3779b97f4a7c15;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

static const char *word(uint64_t number)
{
    static const char *const words[] = {
        "amber", "basil", "cedar", "delta",  "ember", "fable", "grove",  "hazel", "ivory", "jade",
        "koala", "lemon", "maple", "nectar", "olive", "pearl", "quartz", "raven", "sage",  "tulip",
    };
    return words[number % (sizeof words / sizeof *words)];
}

typedef int writer(char key[SAMPLE_KEY], uint64_t number);

#define WRITER(name, ...)                                                                          \
    static int name(char key[SAMPLE_KEY], uint64_t n)                                              \
    {                                                                                              \
        return snprintf(key, SAMPLE_KEY, __VA_ARGS__);                                             \
    }

#define U(expression) ((unsigned long long)(expression))

/* The digit in base 64 that the number has there. */
static int base64_digit(uint64_t number, uint64_t at)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return digits[scatter(number * 31 + at) >> 58];
}

#define BASE64(at) base64_digit(n, at)

/* times */
WRITER(date, "2024-%02llu-%02llu#%s%llu", U(n / 80 % 12 + 1), U(n % 28 + 1), word(n), U(n))
WRITER(date_and_clock, "2024-01-%02lluT%02llu:%02llu:00Z", U(n / 500 + 1), U(n / 24 % 24),
       U(n % 60))
WRITER(month, "2024/%02llu/%s%llu", U(n % 12 + 1), word(n), U(n))
WRITER(plain_date, "202401%02llu%02llu%02llu#%llu", U(n % 28 + 1), U(n % 24), U(n % 60), U(n))
WRITER(seconds, "%llu#%s", U(1700000000 + 977 * n), word(n))
WRITER(millis, "%llu", U(1700000000000 + 977777 * n))
WRITER(micros, "%llu|%s", U(1700000000000000 + 977777777 * n), word(n))
WRITER(nanos, "%llu|%s", U(1700000000000000000 + 977777777777 * n), word(n))
WRITER(reversed_millis, "%llu#%s", U(INT64_MAX - 1700000000000 - 977777 * n), word(n))
WRITER(events, "events#2024-%02llu-%02llu#%llu", U(n % 12 + 1), U(n % 28 + 1), U(n))
WRITER(uuid_7, "%08llx-%04llx-7%03llx-8%03llx-%012llx", U((1700000000000 + 977777 * n) >> 16),
       U((1700000000000 + 977777 * n) & 0xffff), U(scatter(n) & 0xfff), U(scatter(n) >> 52),
       U(scatter(n) >> 16))
WRITER(object_id, "%08llx%016llx", U(1700000000 + 977 * n), U(scatter(n)))

WRITER(local_date, "%02llu/%02llu/2024 %02llu:%02llu|%s", U(n % 28 + 1), U(n / 80 % 12 + 1),
       U(n % 24), U(n % 60), word(n))
WRITER(local_month, "%llu-Jan-2024#%s%llu", U(n / 40 + 1), word(n), U(scatter(n)))
WRITER(week, "2024-W%02llu-%llu#%s%llu", U(n / 20 + 1), U(n % 7), word(n), U(scatter(n)))
WRITER(year_day, "2024-%03llu-%02llu#%s", U(n / 3 + 1), U(n % 24), word(n))
WRITER(short_date, "2401%02llu-%02llu%02llu#%s", U(n / 40 + 1), U(n % 24), U(n % 60), word(n))
WRITER(hex_seconds, "%08llx#%s", U(1700000000 + 977 * n), word(n))
WRITER(hex_micros, "%014llx#%s", U(1700000000000000 + 977777777 * n), word(n))
WRITER(reversed_nines, "%013llu#%s", U(9999999999999 - 1700000000000 - 977777 * n), word(n))
WRITER(snowflake, "%llu", U(((1760000000000 - 1288834974657 + 977777 * n) << 22) + n % 4096))
WRITER(three_words, "%s#%llu#%s", word(n % 3), U(1700000000 + 977 * n), word(scatter(n)))
WRITER(two_constants, "shop#event#2024-01-%02llu#%s%llu", U(n / 40 + 1), word(n), U(n))

WRITER(loose_date, "2024-%llu-%llu#%s%llu", U(n / 80 % 12 + 1), U(n % 28 + 1), word(n), U(n))
WRITER(due_when_written, "2026/%02llu/%02llu#%s", U(n / 84 + 1), U(n / 3 % 28 + 1),
       word(scatter(n)))

/* what is like a time */
WRITER(due_date, "%llu-%02llu-%02llu#%s%llu", U(2025 + scatter(n) % 2), U(scatter(n + 1) % 12 + 1),
       U(scatter(n + 2) % 28 + 1), word(n), U(n))
WRITER(due_local_date, "%02llu.%02llu.2026#%s%llu", U(scatter(n + 2) % 28 + 1),
       U(scatter(n + 1) % 12 + 1), word(n), U(n))
WRITER(due_week, "2026-W%02llu#%s%llu", U(scatter(n) % 52 + 1), word(n), U(n))
WRITER(expiry, "%llu#%s%llu", U(1758000000000 + scatter(n) % 31000000000), word(n), U(n))
WRITER(release, "2024.%llu.%llu#%s%llu", U(scatter(n) % 12 + 1), U(n % 28 + 1), word(n), U(n))
WRITER(many_words, "%s%llu#%llu", word(n), U(n % 40), U(1700000000 + 977 * n))
WRITER(buckets_of_time, "%02llu#%llu", U(n % 16), U(1700000000 + 977 * n))
WRITER(account, "17%08llu", U(scatter(n) % 100000000))
WRITER(long_account, "17%011llu", U(scatter(n) % 100000000000))
WRITER(part_number, "24%02llu%02llu-%s%llu", U(scatter(n) % 12 + 1), U(scatter(n + 5) % 28 + 1),
       word(n), U(n))
WRITER(date_last, "%s%llu#2024-01-%02llu", word(n), U(n), U(n % 28 + 1))
WRITER(time_last, "%s#%03llu#%llu", word(n), U(n), U(1700000000 + n))
WRITER(phone, "%010llu", U(2000000000 + scatter(n) % 7999999999))
WRITER(eight_digits, "%08llu", U(scatter(n) % 100000000))
WRITER(thirteen_digits, "%013llu", U(scatter(n) % 10000000000000))
WRITER(version, "%llu.%llu.%llu", U(n % 30), U(n / 30), U(n % 7))
WRITER(article, "%04llu-%02llu-%s", U(scatter(n) % 10000), U(scatter(n + 9) % 100), word(n))
WRITER(one_day, "2024-01-15#%s#%llu", word(n), U(scatter(n)))

/* numbers */
WRITER(padded, "%010llu", U(5000 + n + n / 10 * 333))
WRITER(not_padded, "%llu", U(990 + n + n / 10 * 33))
WRITER(order, "order%07llu", U(n + n / 10 * 333))
WRITER(order_of_user, "%07llu#%s", U(n + n / 10 * 333), word(n))
WRITER(by_tens, "%09llu", U(10 * (n + n / 10 * 333)))
WRITER(random_numbers, "%010llu", U(scatter(n) % 10000000000))
WRITER(half_full, "%06llu", U(2 * n + scatter(n) % 2))
WRITER(buckets, "%03llu#%s%llu", U(n % 100), word(n), U(n))
WRITER(buckets_of_owners, "%04llu#%s%llu", U(n / 2 + n / 10 * 30), word(scatter(n)), U(scatter(n)))
WRITER(many_of_each, "%06llu#2024-01-%02llu", U(n / 25), U(n % 25 + 1))
WRITER(postcode, "%05llu", U(10000 + 3 * n + scatter(n) % 3))

WRITER(with_blank, "Product %llu", U(n + 1))
WRITER(with_words, "Order No. %llu", U(n + 1000))
WRITER(of_a_year, "INV-2024-%07llu", U(n + 1))
WRITER(customer, "Customer%llu", U(n + 1))
WRITER(kinds, "%s:%08llu", word(n % 3), U(n / 3))
WRITER(base_36, "%c%c%c%c", (int)"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n / 1296 % 36],
       (int)"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n / 36 % 36],
       (int)"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 36], '-')
WRITER(wide_gaps, "%010llu", U(40 * n + scatter(n) % 40))
WRITER(of_customers, "%s%llu:%06llu", word(n), U(n % 100), U(n / 100))

/* random bytes */
WRITER(uuid_4, "%08llx-%04llx-4%03llx-8%03llx-%012llx", U(scatter(n) >> 32),
       U(scatter(n) >> 16 & 0xffff), U(scatter(n) & 0xfff), U(scatter(n + 7777) >> 52),
       U(scatter(n + 7777) >> 16))
WRITER(md5, "%016llx%016llx#%s", U(scatter(n)), U(scatter(n + 7777)), word(n))
WRITER(upper_hex, "%016llX/%s", U(scatter(n)), word(n))
WRITER(user_hash, "user#%016llx", U(scatter(n)))
WRITER(words, "%s#%s#%03llu", word(n), word(scatter(n)), U(n))
WRITER(salted, "%02llx#%s%llu", U(scatter(n) % 256), word(n), U(n))
WRITER(hex_counter, "%016llx", U(n * 77))
WRITER(hex_words, "%s%02llu-decade", n % 2 == 0 ? "facade" : "deface", U(n % 100))
WRITER(mac, "00:1b:44:%02llx:%02llx:%02llx", U(n / 250), U(n % 250), U(scatter(n) % 256))

/* parts of keys: their order, their widths, what stands between them */
WRITER(salted_rows, "%03llu#user%02llu#%llu", U(scatter(n) % 1000), U(n % 60), U(scatter(n + 3)))
WRITER(salted_by_owner, "%03llu#user%02llu#%llu", U(scatter(n % 60) % 1000), U(n % 60),
       U(scatter(n + 3)))
WRITER(of_shops, "%04llu#user%02llu#%llu", U(scatter(n % 40) % 10000), U(n % 60), U(scatter(n + 3)))
WRITER(street_first, "%s%04llu#city%02llu#land%llu", word(n), U(n), U(scatter(n) % 60), U(n % 7))
WRITER(street_last, "land%llu#city%02llu#%s%04llu", U(n % 7), U(scatter(n) % 60), word(n), U(n))
WRITER(port_last, "MSCU%07llu#%s", U(scatter(n) % 10000000), word(n))
WRITER(unpadded, "%s#room%llu#temp", word(n), U(scatter(n) % 1000))
WRITER(several_numbers, "t%llu#room%llu-bed%llu#n%llu", U(scatter(n) % 20), U(scatter(n + 1) % 30),
       U(n), U(scatter(n + 2) % 2000))
WRITER(many_numbers, "r%lluh%lluw%lluz%lluk%llun%llu", U(scatter(n) % 20), U(scatter(n + 1) % 30),
       U(n), U(scatter(n + 2) % 2000), U(n % 5), U(n % 13))
WRITER(kinds_of_numbers, "%s%llu/%llu",
       n % 3 == 0   ? "user"
       : n % 3 == 1 ? "order"
                    : "item",
       U(scatter(n) % 5000), U(scatter(n + 1) % 300))
WRITER(degrees, "%llu.%02llu,%llu.%02llu#%s", U(scatter(n) % 60), U(scatter(n + 1) % 100),
       U(scatter(n + 2) % 140), U(scatter(n + 3) % 100), word(n))
WRITER(signed_degrees, "%s%llu.%02llu/%s%llu.%02llu/%s%llu", n % 2 == 0 ? "-" : "",
       U(scatter(n) % 90), U(scatter(n + 1) % 100), n % 3 == 0 ? "-" : "", U(scatter(n + 2) % 180),
       U(scatter(n + 3) % 100), word(n), U(n))
WRITER(geo, "geo:%llu.%02llu;%llu.%02llu", U(scatter(n) % 90), U(scatter(n + 1) % 100),
       U(scatter(n + 2) % 180), U(scatter(n + 3) % 100))
WRITER(mixed, "%s%c%s%c%llu", word(scatter(n)), "#:|"[n % 3], word(n), "|#"[n / 3 % 2],
       U(scatter(n)))
WRITER(clock_in_key, "%s#%s#%02llu:%02llu", word(scatter(n)), word(n), U(n % 24), U(n % 60))
WRITER(of_two_kinds, "%s%s%c%llu", n % 2 == 0 ? "U#" : "O:", word(scatter(n)),
       n % 2 == 0 ? ':' : '#', U(scatter(n)))
WRITER(padded_room, "%s#room%03llu#temp%03llu", word(n), U(scatter(n) % 1000), U(n))
WRITER(models, "%s#%s%s%03llu", word(n), word(scatter(n)), n % 9 == 0 ? "-mk2" : "", U(n))
WRITER(no_delimiter, "%s%s%s%s%s", word(scatter(n)), n % 2 == 0 ? "labs" : "",
       n % 3 == 0   ? "order"
       : n % 3 == 1 ? "invoice"
                    : "cart",
       word(scatter(n + 1)), word(n))
WRITER(three_kinds, "%s%c%s%c%llu", word(scatter(n)), "#:|"[n % 3], word(n), "#:|"[n % 3],
       U(scatter(n)))
WRITER(within_values, "%s#%s%s%s#%llu", word(scatter(n)), word(scatter(n + 5)), n % 3 ? "" : "#",
       n % 3 ? "" : word(n), U(scatter(n)))
WRITER(single_table, "C#%s%03llu%s", word(n), U(n / 3),
       n % 3 == 0   ? ""
       : n % 3 == 1 ? "#ADDRESS#home"
                    : "#ORDER#17")
WRITER(base64, "%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%c%cgQ==", BASE64(0), BASE64(1), BASE64(2),
       BASE64(3), BASE64(4), BASE64(5), BASE64(6), BASE64(7), BASE64(8), BASE64(9), BASE64(10),
       BASE64(11), BASE64(12), BASE64(13), BASE64(14), BASE64(15), BASE64(16), BASE64(17),
       BASE64(18), BASE64(19), BASE64(20), BASE64(21))
WRITER(packed_base64, "AAA%cAAECAA%c%c%c%c%c%c%c%c%c%cgQ==", BASE64(0) % 26 + 'A', BASE64(1),
       BASE64(2), BASE64(3), BASE64(4), BASE64(5), BASE64(6), BASE64(7), BASE64(8), BASE64(9),
       BASE64(10))
WRITER(video, "%c%c%c%c%c%c%c%c%c%c%c", BASE64(0), BASE64(1), BASE64(2), BASE64(3), BASE64(4),
       BASE64(5), BASE64(6), BASE64(7), BASE64(8), BASE64(9), BASE64(10))
WRITER(twenty_digits, "%020llu", U(scatter(n)))
WRITER(packed, "%c%c%c%c%c%c%c%c%c%c", 1, (int)(n % 30 * 8 + 1), 'z', 0x90,
       (int)(scatter(n) >> 56 | 1), (int)(scatter(n) >> 48 & 0xff | 1),
       (int)(scatter(n) >> 40 & 0xff | 1), 2, 3, (int)(n % 9 + 1))
WRITER(name_and_bytes, "%s%03llu#%c%c%c", word(n), U(n), 0x90, (int)(n % 250 + 1), 7)

/* hosts */
WRITER(behind_a_word, "site#www.%s%llu.com#%s", word(n), U(n / 9), word(scatter(n)))
WRITER(one_domain, "com.example/%s/%s%llu", word(scatter(n)), word(n), U(n))
WRITER(host, "www.%s%llu.com/%s", word(n), U(n / 9), word(scatter(n)))
WRITER(address, "https://%s%llu.example.co.uk/", word(n), U(n))
WRITER(reversed_host, "com.%s%llu.www/%s", word(n), U(n / 9), word(scatter(n)))
WRITER(mail, "%s%llu@example.com", word(n), U(n))
WRITER(dotted_mail, "%s.com%llu.x@example.com", word(n), U(n))
WRITER(file, "%s%llu.py", word(n), U(n))
WRITER(ip, "10.%llu.%llu.7", U(n / 250), U(n % 250))
WRITER(java, "org.%s.%s%llu", word(n), word(scatter(n)), U(n))

static const struct {
    const char *name;
    writer *write;
    const char *rule;   /* NULL: none */
    const char *better; /* how one suggestion begins; NULL: any, or none */
    enum { NOBODY_KNOWS, IN_ORDER, IN_NO_ORDER } written;
} cases[] = {
#define CASE(write, rule, better)                                                                  \
    {                                                                                              \
#write, write, rule, better, NOBODY_KNOWS                                                  \
    }
#define WRITTEN(order, write, rule, better)                                                        \
    {                                                                                              \
#write, write, rule, better, order                                                         \
    }
    CASE(date, "key-time-first", NULL),
    CASE(date_and_clock, "key-time-first", NULL),
    CASE(month, "key-time-first", NULL),
    CASE(plain_date, "key-time-first", NULL),
    WRITTEN(IN_ORDER, seconds, "key-time-first", NULL),
    WRITTEN(IN_NO_ORDER, seconds, NULL, NULL),
    CASE(seconds, NULL, NULL),
    WRITTEN(IN_ORDER, hex_seconds, "key-time-first", NULL),
    WRITTEN(IN_ORDER, hex_micros, "key-time-first", NULL),
    WRITTEN(IN_NO_ORDER, hex_seconds, NULL, NULL),
    WRITTEN(IN_ORDER, short_date, "key-time-first", NULL),
    WRITTEN(IN_NO_ORDER, part_number, NULL, NULL),
    WRITTEN(IN_NO_ORDER, account, NULL, NULL),
    WRITTEN(IN_NO_ORDER, long_account, NULL, NULL),
    CASE(local_date, "key-time-first", NULL),
    CASE(local_month, "key-time-first", NULL),
    CASE(week, "key-time-first", NULL),
    CASE(loose_date, "key-time-first", NULL),
    WRITTEN(IN_NO_ORDER, loose_date, "key-time-first", NULL),
    WRITTEN(IN_ORDER, due_when_written, "key-time-first", NULL),
    CASE(due_when_written, NULL, NULL),
    CASE(due_date, NULL, NULL),
    WRITTEN(IN_NO_ORDER, due_date, NULL, NULL),
    WRITTEN(IN_NO_ORDER, due_local_date, NULL, NULL),
    WRITTEN(IN_NO_ORDER, due_week, NULL, NULL),
    CASE(expiry, NULL, NULL),
    WRITTEN(IN_NO_ORDER, expiry, NULL, NULL),
    CASE(release, "key-padding", NULL),
    CASE(year_day, "key-time-first", NULL),
    CASE(reversed_nines, "key-time-first", NULL),
    CASE(snowflake, "key-time-first", NULL),
    WRITTEN(IN_ORDER, three_words, "key-time-first", NULL),
    CASE(two_constants, "key-time-first", "shop#event#"),
    WRITTEN(IN_ORDER, many_words, NULL, NULL),
    WRITTEN(IN_ORDER, buckets_of_time, NULL, NULL),
    CASE(millis, "key-time-first", NULL),
    CASE(micros, "key-time-first", NULL),
    CASE(nanos, "key-time-first", NULL),
    CASE(reversed_millis, "key-time-first", NULL),
    CASE(events, "key-time-first", "events#"),
    CASE(uuid_7, "key-time-first", NULL),
    CASE(object_id, "key-time-first", NULL),
    CASE(date_last, NULL, NULL),
    CASE(time_last, NULL, NULL),
    CASE(phone, NULL, NULL),
    CASE(eight_digits, NULL, NULL),
    CASE(thirteen_digits, NULL, NULL),
    CASE(version, "key-padding", NULL),
    CASE(article, NULL, NULL),
    CASE(one_day, NULL, NULL),
    CASE(padded, "key-sequential", NULL),
    CASE(not_padded, "key-sequential", NULL),
    CASE(order, "key-sequential", "order"),
    CASE(order_of_user, "key-sequential", NULL),
    CASE(by_tens, "key-sequential", NULL),
    CASE(random_numbers, NULL, NULL),
    CASE(half_full, NULL, NULL),
    CASE(buckets, NULL, NULL),
    CASE(buckets_of_owners, "key-sequential", NULL),
    WRITTEN(IN_ORDER, buckets_of_owners, "key-sequential", NULL),
    WRITTEN(IN_NO_ORDER, buckets_of_owners, NULL, NULL),
    CASE(many_of_each, NULL, NULL),
    CASE(postcode, NULL, NULL),
    CASE(with_blank, "key-sequential", "Product "),
    CASE(with_words, "key-sequential", NULL),
    CASE(of_a_year, "key-sequential", "INV-2024-"),
    CASE(kinds, "key-sequential", NULL),
    WRITTEN(IN_ORDER, base_36, "key-sequential", NULL),
    WRITTEN(IN_NO_ORDER, base_36, NULL, NULL),
    WRITTEN(IN_ORDER, wide_gaps, "key-sequential", NULL),
    WRITTEN(IN_NO_ORDER, wide_gaps, NULL, NULL),
    WRITTEN(IN_ORDER, of_customers, NULL, NULL),
    CASE(uuid_4, "key-hashed", NULL),
    CASE(md5, "key-hashed", NULL),
    CASE(upper_hex, "key-hashed", NULL),
    CASE(user_hash, "key-hashed", NULL),
    CASE(words, NULL, NULL),
    CASE(salted, NULL, NULL),
    CASE(hex_counter, NULL, NULL),
    CASE(hex_words, NULL, NULL),
    CASE(mac, NULL, NULL),
    CASE(salted_rows, "key-scattered", "user"),
    CASE(salted_by_owner, NULL, NULL),
    CASE(of_shops, NULL, NULL),
    CASE(street_first, "key-order", "land"),
    CASE(street_last, NULL, NULL),
    CASE(port_last, NULL, NULL),
    CASE(unpadded, "key-padding", NULL),
    CASE(padded_room, NULL, NULL),
    CASE(several_numbers, "key-padding", NULL),
    CASE(many_numbers, "key-padding", NULL),
    CASE(kinds_of_numbers, "key-padding", NULL),
    CASE(degrees, NULL, NULL),
    CASE(signed_degrees, NULL, NULL),
    CASE(geo, NULL, NULL),
    CASE(mixed, "key-delimiters", NULL),
    CASE(clock_in_key, NULL, NULL),
    CASE(of_two_kinds, NULL, NULL),
    CASE(models, NULL, NULL),
    CASE(no_delimiter, "key-delimiters", NULL),
    CASE(three_kinds, "key-delimiters", NULL),
    CASE(within_values, "key-delimiters", NULL),
    CASE(single_table, NULL, NULL),
    CASE(base64, "key-hashed", NULL),
    CASE(packed_base64, "key-binary", NULL),
    CASE(video, NULL, NULL),
    CASE(twenty_digits, "key-hashed", NULL),
    CASE(packed, "key-binary", NULL),
    CASE(name_and_bytes, NULL, NULL),
    CASE(behind_a_word, "key-domain", "site#com."),
    CASE(one_domain, "key-domain", NULL),
    CASE(host, "key-domain", "com."),
    CASE(address, "key-domain", "uk.co.example."),
    CASE(reversed_host, NULL, NULL),
    CASE(mail, "personal-data", NULL),
    CASE(dotted_mail, "personal-data", NULL),
    CASE(file, NULL, NULL),
    CASE(ip, "key-padding", NULL),
    CASE(java, NULL, NULL),
};

/* The last one was written a day ago, if that is known. */
static void fill_in(struct made_sample *sample, writer *write, size_t count, int written)
{
    sample->seen.row_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        char key[SAMPLE_KEY];
        uint64_t moment = written == IN_ORDER ? i : scatter(i + 1) % count;
        int size = write(key, i);
        assert_true(size > 0 && size < SAMPLE_KEY);
        sample_add(sample, bytes_make(key, (size_t)size));
        if (written != NOBODY_KNOWS)
            sample->rows[i].cells[0].timestamp_us =
                SAMPLE_NOW_US - DAY_US - (int64_t)(count - moment) * MINUTE_US;
    }
}

static void fill(struct made_sample *sample, writer *write, size_t count)
{
    fill_in(sample, write, count, NOBODY_KNOWS);
}

static void forms_are_told_from_similar_keys(void **state)
{
    struct made_sample *sample = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("# %s %d\n", cases[i].name, cases[i].written);
        fill_in(sample, cases[i].write, SAMPLE_ROWS, cases[i].written);
        sample_expect(sample, cases[i].rule);
        if (cases[i].better == NULL)
            continue;
        const struct advice_finding *finding = sample_finding(sample, cases[i].rule);
        assert_true(finding->better_count > 0);
        assert_true(bytes_start_with(finding->better[0].better, bytes_of(cases[i].better)));
    }
}

static void few_keys_say_nothing(void **state)
{
    struct made_sample *sample = *state;
    fill(sample, date, KEYS_LEAST - 1);
    sample_expect(sample, NULL);
    fill(sample, date, KEYS_LEAST);
    sample_expect(sample, "key-time-first");
    fill(sample, events, KEYS_PREFIX_LEAST - 1);
    sample_expect(sample, NULL);
    fill(sample, uuid_4, KEYS_HASHED_LEAST - 1);
    sample_expect(sample, NULL);
    fill(sample, host, KEYS_LEAST - 1);
    sample_expect(sample, NULL);
}

/* 95 % are enough, less is not. */
static void a_few_other_keys_do_not_matter(void **state)
{
    struct made_sample *sample = *state;
    for (size_t others = 50; others <= 51; others++) {
        fill(sample, date, SAMPLE_ROWS - others);
        for (size_t i = 0; i < others; i++) {
            char key[SAMPLE_KEY];
            sample_add(sample, bytes_make(key, (size_t)words(key, i)));
        }
        sample_expect(sample, others == 50 ? "key-time-first" : NULL);
    }
}

static void add_number(struct made_sample *sample, uint64_t number, const char *text)
{
    bytes rest = bytes_of(text);
    uint8_t key[SAMPLE_KEY];
    for (size_t i = 0; i < sizeof number; i++)
        key[i] = (uint8_t)(number >> (8 * (sizeof number - 1 - i)));
    memcpy(key + sizeof number, rest.data, rest.size);
    sample_add(sample, bytes_make(key, sizeof number + rest.size));
}

static void numbers_of_eight_bytes_are_numbers(void **state)
{
    struct made_sample *sample = *state;
    for (uint64_t i = 0; i < SAMPLE_ROWS; i++)
        add_number(sample, 1700000000000 + 977777 * i, word(i));
    sample_expect(sample, "key-time-first");
    sample->seen.row_count = 0;
    for (uint64_t i = 0; i < SAMPLE_ROWS; i++) /* of what is due */
        add_number(sample, 1759000000000 + scatter(i) % 31000000000, word(i));
    sample_look(sample);
    assert_null(sample_finding(sample, "key-time-first"));
    sample->seen.row_count = 0;
    for (uint64_t i = 0; i < SAMPLE_ROWS; i++)
        add_number(sample, i + i / 10 * 333, "");
    sample_expect(sample, "key-sequential");
    sample->seen.row_count = 0;
    for (uint64_t i = 0; i < SAMPLE_ROWS; i++)
        add_number(sample, scatter(i), word(i));
    sample_expect(sample, "key-hashed");
    sample->seen.row_count = 0;
    for (uint64_t i = 0; i < SAMPLE_ROWS; i++)
        add_number(sample, scatter(i) >> 24, word(i));
    sample_expect(sample, "key-binary");
}

static void write_times(struct made_sample *sample, int64_t step_us, bool is_in_order)
{
    for (size_t i = 0; i < sample->seen.row_count; i++) {
        uint64_t number = strtoull((const char *)sample->rows[i].key.data, NULL, 10);
        uint64_t moment = is_in_order ? number : scatter(number) % 2000;
        sample->rows[i].cells[0].timestamp_us =
            SAMPLE_NOW_US - YEAR_US / 2 + (int64_t)moment * step_us;
    }
}

/* Numbers with gaps are consecutive if they were written in their order, and not just loaded so. */
static void gaps_are_filled_by_the_order_of_writes(void **state)
{
    struct made_sample *sample = *state;
    fill(sample, half_full, SAMPLE_ROWS);
    write_times(sample, HOUR_US, true);
    sample_expect(sample, "key-sequential");
    write_times(sample, HOUR_US, false);
    sample_expect(sample, NULL);
    write_times(sample, SECOND_US, true);
    sample_expect(sample, NULL);
}

WRITER(local_dates, "t#%02llu/%02llu/2025#%s%llu", U(n % 28 + 1), U(n / 112 + 1), word(n), U(n))
WRITER(dates_of_america, "%02llu/%02llu/2025#%s%llu", U(n / 112 + 1), U(n % 28 + 1), word(n), U(n))
WRITER(unpadded_order, "order%llu", U(n + n / 10 * 33))

/* Where new rows go, whatever else the table has. */
static void check_range(struct made_sample *sample, const char *rule, const char *start,
                        const char *end)
{
    sample_look(sample);
    const struct advice_finding *finding = sample_finding(sample, rule);
    assert_non_null(finding);
    assert_true(finding->has_range);
    assert_true(bytes_start_with(finding->start, bytes_of(start)));
    assert_true(bytes_equal(finding->end, bytes_of(end)));
}

/* 28/01 comes before 28/09, and 09/01 before both: new rows go to the last day's. */
static void new_rows_go_behind_the_latest(void **state)
{
    struct made_sample *sample = *state;
    fill(sample, local_dates, SAMPLE_ROWS);
    check_range(sample, "key-time-first", "t#28/09/2025", "t#28/09/2026");
    assert_int_equal(sample_finding(sample, "key-time-first")->start.size, strlen("t#28/09/2025"));
    fill(sample, dates_of_america, SAMPLE_ROWS);
    check_range(sample, "key-time-first", "09/28/2025", "09/28/2026");
    fill(sample, loose_date, SAMPLE_ROWS);
    check_range(sample, "key-time-first", "2024-12-28#", "");
    fill(sample, unpadded_order, SAMPLE_ROWS);
    check_range(sample, "key-sequential", "order4266", "ordes");
    fill(sample, date, SAMPLE_ROWS - 20); /* and some that begin with words */
    for (uint64_t i = 0; i < 20; i++) {
        char key[SAMPLE_KEY];
        sample_add(sample, bytes_make(key, (size_t)words(key, i)));
    }
    check_range(sample, "key-time-first", "2024-12-28#", "");
}

/* Whatever is padded in the better key, nothing is left that is not. */
static void all_numbers_are_padded(void **state)
{
    struct made_sample *sample = *state;
    fill(sample, several_numbers, SAMPLE_ROWS);
    sample_look(sample);
    const struct advice_finding *finding = sample_finding(sample, "key-padding");
    assert_non_null(strstr(finding->evidence, "in their parts 1, 2 and 3, of up to 4 digits"));
    assert_int_equal(finding->better_count, ADVICE_KEYS_SHOWN);
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++)
        assert_int_equal(finding->better[i].better.size, strlen("t01#room01-bed001#n0001"));
}

WRITER(behind_bytes, "\xff\x1b[2J\x01%07llu", U(n + n / 10 * 333))
WRITER(behind_many_letters, "%s%07llu",
       "\xc3\x9f\xc3\x9f\xc3\x9f\xc3\x9f\xc3\x9f\xc3\x9f\xc3\x9f\xc3\x9f\xc3\x9f\xc3\x9f\\",
       U(n + n / 10 * 333))

/* What all keys begin with is shown as keys are. */
static void a_start_of_any_bytes_is_shown(void **state)
{
    struct made_sample *sample = *state;
    fill(sample, behind_bytes, SAMPLE_ROWS);
    sample_look(sample);
    assert_non_null(strstr(sample_finding(sample, "key-sequential")->evidence,
                           "begin with \"\\xff\\x1b[2J\\x01\" and a number"));
    fill(sample, behind_many_letters, SAMPLE_ROWS);
    sample_look(sample);
    assert_non_null(strstr(sample_finding(sample, "key-sequential")->evidence, "\xc3\x9f\\x5c\""));
}

WRITER(birth, "%04llu-%02llu-%02llu#%s%llu", U(1975 + scatter(n) % 40), U(scatter(n + 1) % 12 + 1),
       U(scatter(n + 2) % 28 + 1), word(n), U(scatter(n)))
WRITER(local_birth, "%02llu.%02llu.%04llu#%s%llu", U(scatter(n) % 28 + 1),
       U(scatter(n + 1) % 12 + 1), U(1975 + scatter(n + 2) % 40), word(n), U(scatter(n)))

/* Within so long a time, before which nothing was. */
static void write_in_no_order(struct made_sample *sample, int64_t span_us)
{
    for (size_t i = 0; i < sample->seen.row_count; i++)
        sample->rows[i].cells[0].timestamp_us =
            SAMPLE_NOW_US - YEAR_US + (int64_t)(scatter(i + 99) % (uint64_t)span_us);
}

/* Dates of births, written as people came: no row is written where the last one was. What is old
 * and was loaded within days says nothing. */
static void dates_of_something_else_are_no_times(void **state)
{
    struct made_sample *sample = *state;
    writer *const writers[] = {birth, local_birth};
    for (size_t i = 0; i < 2; i++) {
        fill(sample, writers[i], SAMPLE_ROWS);
        write_in_no_order(sample, YEAR_US / 2);
        sample_expect(sample, NULL);
        write_in_no_order(sample, 6 * DAY_US);
        sample_expect(sample, "key-time-first");
        write_in_no_order(sample, YEAR_US / 2);
        for (size_t row = 0; row < SAMPLE_ROWS; row++) { /* in the order of years, nearly */
            const char *year = (const char *)sample->rows[row].key.data + (i == 0 ? 0 : 6);
            sample->rows[row].cells[0].timestamp_us +=
                (strtoll(year, NULL, 10) - 1975) * 15 * DAY_US;
        }
        sample_expect(sample, "key-time-first");
    }
    fill_in(sample, date, SAMPLE_ROWS, NOBODY_KNOWS); /* of one year, written over half of it */
    write_in_no_order(sample, YEAR_US / 2);
    sample_expect(sample, "key-time-first");
}

/* Each has a number of its own, so that they are no buckets. */
static void a_few_hundred_numbers_are_a_sequence(void **state)
{
    struct made_sample *sample = *state;
    fill(sample, customer, 400);
    sample_expect(sample, "key-sequential");
    fill(sample, customer, NUMBERS_SPAN_ALONE - 1);
    sample_expect(sample, "key-padding");
}

/* Nineteen digits that might be a snowflake's as well: the moment of writing says which. */
static void nanoseconds_are_told_from_snowflakes(void **state)
{
    struct made_sample *sample = *state;
    for (int is_snowflake = 0; is_snowflake < 2; is_snowflake++) {
        sample->seen.row_count = 0;
        for (uint64_t i = 0; i < 200; i++) {
            char key[SAMPLE_KEY];
            uint64_t millis = 1740000000000 + 977777 * i;
            uint64_t number = is_snowflake ? (millis - 1288834974657) << 22 | scatter(i) >> 42
                                           : millis * 1000000 + scatter(i) % 1000000;
            int size = snprintf(key, sizeof key, "%llu", U(number));
            sample_add(sample, bytes_make(key, (size_t)size));
            sample->rows[i].cells[0].timestamp_us = (int64_t)millis * 1000;
        }
        sample_expect(sample, "key-time-first");
        const char *evidence = sample_finding(sample, "key-time-first")->evidence;
        assert_true((strstr(evidence, "snowflake") != NULL) == is_snowflake);
        assert_true((strstr(evidence, "nanoseconds") != NULL) == !is_snowflake);
    }
}

static void keys_of_all_bytes_are_looked_at(void **state)
{
    struct made_sample *sample = *state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        sample->seen.row_count = 0;
        for (uint64_t i = 0; i < 60; i++) {
            uint8_t key[16];
            size_t size = 1 + scatter(seed * 1000 + i) % sizeof key;
            for (size_t at = 0; at < size; at++) /* digits, letters, delimiters, zeroes */
                key[at] = (uint8_t) "0129afz#-T:.\0/@\xff"[scatter(seed + i * 99 + at * 7) % 16];
            sample_add(sample, bytes_make(key, size));
        }
        sample_expect(sample, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(forms_are_told_from_similar_keys, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(few_keys_say_nothing, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(a_few_other_keys_do_not_matter, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(numbers_of_eight_bytes_are_numbers, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(gaps_are_filled_by_the_order_of_writes, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(all_numbers_are_padded, sample_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(new_rows_go_behind_the_latest, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(a_start_of_any_bytes_is_shown, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(dates_of_something_else_are_no_times, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(a_few_hundred_numbers_are_a_sequence, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(nanoseconds_are_told_from_snowflakes, sample_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(keys_of_all_bytes_are_looked_at, sample_setup,
                                        sample_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
