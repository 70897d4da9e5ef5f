/* Memory is divided so that the parts hold, what was given stays, and what cannot hold is refused.
 */
#include "base/sizing.h"

#include "base/limits.h"
#include "base/testing/testing.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})
#define MB        (1ull << 20)

static void read_fine(struct settings *settings, const char *const *arguments)
{
    assert_ok(settings_read(arguments, LIST(), settings));
}

static void assert_refused(const char *const *arguments, const char *words)
{
    struct settings settings;
    status s = settings_read(arguments, LIST(), &settings);
    assert_string_equal(status_message(s), words);
    assert_status(s, STATUS_INVALID_ARGUMENT);
    settings_free(&settings);

    struct buffer refusals = {0}; /* asks for all that is wrong */
    assert_ok(settings_read_sound(arguments, LIST(), &settings, &refusals));
    assert_int_equal(refusals.size, strlen(words) + 1);
    assert_memory_equal(refusals.data, words, strlen(words));
    buffer_free(&refusals);
    settings_free(&settings);
}

static void without_it_nothing_follows(void **state)
{
    struct settings settings;
    (void)state;
    read_fine(&settings, LIST());
    assert_int_equal(settings.cache, 512 * MB);
    assert_int_equal(settings.max_connections, 10000);
    assert_int_equal(sizing_commit_queue(&settings), LIMIT_COMMIT_QUEUE_BYTES);
    assert_int_equal(sizing_largest_commit(&settings), 0);
    assert_true(sizing_requests(&settings) == SIZE_MAX);
    assert_true(sizing_values(&settings) == SIZE_MAX);
    assert_true(sizing_values_alone(&settings) == SIZE_MAX);
    assert_int_equal(sizing_blocks(&settings), settings.cache);
    settings_free(&settings);
}

static void all_parts_hold(void **state)
{
    static const char *const sizes[] = {"512MB", "600MB", "1GB",  "1536MB", "2GB",
                                        "4GB",   "8GB",   "64GB", "16TB"};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct settings settings;
        read_fine(&settings, LIST("--memory", sizes[i]));
        struct sizing parts = sizing_of(&settings);
        assert_true(sizing_sum(&parts) <= settings.memory);
        assert_true(settings.memory - sizing_sum(&parts) < MB);
        assert_true(parts.cache >= settings.memory / 16);
        assert_true(sizing_blocks(&settings) + sizing_values(&settings) == parts.cache);
        assert_true(sizing_blocks(&settings) >= settings.memory / 32);
        assert_true(settings.max_message <= 256 * MB && settings.write_buffer <= 128 * MB);
        settings_free(&settings);
    }
}

static void shares_of_half_and_one_gigabyte(void **state)
{
    struct settings settings;
    (void)state;
    read_fine(&settings, LIST("--memory", "512MB"));
    assert_int_equal(settings.cache / MB, 58);
    assert_int_equal(settings.write_buffer, 32 * MB);
    assert_int_equal(settings.max_message, 512 * MB / 12);
    assert_int_equal(settings.query_memory, 16 * MB);
    assert_int_equal(settings.datastore_transaction_memory, 32 * MB);
    assert_int_equal(settings.max_connections, 819);
    assert_int_equal(sizing_commit_queue(&settings), 2 * (512 * MB / 12));
    assert_true(sizing_largest_commit(&settings) > sizing_commit_queue(&settings));
    assert_true(sizing_largest_commit(&settings) < LIMIT_CELL_BYTES);
    assert_int_equal(sizing_requests(&settings), 512 * MB / 12);
    assert_int_equal(sizing_requests(&settings) / 4 / sizing_unasked(&settings), 170);
    assert_int_equal(sizing_values(&settings), 16 * MB);
    assert_int_equal(sizing_values_alone(&settings), 320 * MB);
    assert_true(sizing_lacks_large_work(&settings));
    settings_free(&settings);
    read_fine(&settings, LIST("--memory", "1GB"));
    assert_true(settings.max_message > LIMIT_CELL_BYTES + MB);
    assert_int_equal(sizing_requests(&settings) / 4 / sizing_unasked(&settings), 128);
    assert_int_equal(sizing_values(&settings) / MB, 25);
    assert_true(sizing_values_alone(&settings) >= 2ull * LIMIT_ROW_BYTES);
    assert_true(sizing_values_alone(&settings) >= 6ull * LIMIT_CELL_BYTES);
    assert_true(sizing_http1_bodies(&settings) >= LIMIT_HTTP_BODY_BYTES);
    settings_free(&settings);
}

static void large_work_has_room_from_four_gigabytes_on(void **state)
{
    const struct settings none = {.memory = 0}, three = {.memory = 3072 * MB},
                          four = {.memory = 4096 * MB};
    (void)state;
    assert_false(sizing_lacks_large_work(&none));
    assert_true(sizing_lacks_large_work(&three));
    assert_false(sizing_lacks_large_work(&four));
}

/* Five times the largest cell, out of its own share and of what is closed for it. */
static void tables_of_the_largest_cells_are_merged(void **state)
{
    static const char *const sizes[] = {"512MB", "768MB", "1GB", "1536MB", "2GB", "3GB"};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct settings settings;
        read_fine(&settings, LIST("--memory", sizes[i]));
        struct sizing parts = sizing_of(&settings);
        uint64_t largest = settings.max_message < LIMIT_CELL_BYTES ? settings.max_message
                                                                   : (uint64_t)LIMIT_CELL_BYTES;
        assert_true(parts.large_work + parts.messages + settings.memory / 32 >= 5 * largest);
        assert_true(sizing_largest_cell(&settings) == (largest < LIMIT_CELL_BYTES ? largest : 0));
        settings_free(&settings);
    }
}

static void given_settings_stay(void **state)
{
    struct settings settings;
    (void)state;
    read_fine(&settings,
              LIST("--memory", "1GB", "--write-buffer", "128MB", "--max-connections", "100"));
    assert_int_equal(settings.write_buffer, 128 * MB);
    assert_int_equal(settings.max_connections, 100);
    struct sizing parts = sizing_of(&settings);
    assert_true(sizing_sum(&parts) <= 1024 * MB);
    settings_free(&settings);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    assert_refused(LIST("--memory", "256MB"), "--memory: is less than 512 MB");
    assert_refused(LIST("--memory", "1GB", "--cache", "512MB"),
                   "--memory: 1024 MB are not enough: write buffers take 128, connections 63, "
                   "messages 448, large cells 20, queries 128, transactions 64, the rest 96, the "
                   "cache 512");
    assert_refused(LIST("--memory", "1GB", "--max-message", "256MB"),
                   "--memory: 1024 MB are not enough: write buffers take 128, connections 63, "
                   "messages 896, large cells 0, queries 128, transactions 64, the rest 96, the "
                   "cache 8");
}

static void a_reserve_holds_the_write_buffer(void **state)
{
    struct settings settings;
    (void)state;
    read_fine(&settings, LIST("--write-buffer", "64MB", "--disk-reserve", "32MB"));
    assert_int_equal(settings.disk_reserve, 32 * MB);
    assert_true(sizing_reserve_is_short(&settings));
    settings_free(&settings);
    read_fine(&settings, LIST("--write-buffer", "1GB"));
    assert_int_equal(settings.disk_reserve, 1024 * MB);
    assert_int_equal(settings.origins[SETTING_disk_reserve].source, OPTION_DERIVED);
    settings_free(&settings);
    read_fine(&settings, LIST("--disk-reserve", "0"));
    assert_int_equal(settings.disk_reserve, 0);
    assert_false(sizing_reserve_is_short(&settings));
    settings_free(&settings);
    read_fine(&settings, LIST("--disk-reserve", "128MB"));
    assert_int_equal(settings.disk_reserve, 128 * MB);
    settings_free(&settings);
}

static void its_origin_is_told(void **state)
{
    struct settings settings;
    struct buffer value = {0}, origin = {0};
    (void)state;
    read_fine(&settings, LIST("--memory", "1GB"));
    settings_describe(&settings, SETTING_cache, &value, &origin);
    assert_memory_equal(origin.data, "cache, from other settings", origin.size);
    buffer_free(&value);
    buffer_free(&origin);
    settings_free(&settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_it_nothing_follows),
        cmocka_unit_test(all_parts_hold),
        cmocka_unit_test(shares_of_half_and_one_gigabyte),
        cmocka_unit_test(large_work_has_room_from_four_gigabytes_on),
        cmocka_unit_test(tables_of_the_largest_cells_are_merged),
        cmocka_unit_test(given_settings_stay),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(a_reserve_holds_the_write_buffer),
        cmocka_unit_test(its_origin_is_told),
    };
    return cmocka_run_group_tests_name("base_sizing", tests, NULL, NULL);
}
