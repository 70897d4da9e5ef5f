enum {
    LIMIT_KB = 1 << 10,
    LIMIT_MB = 1 << 20,
};
enum {
    LIMIT_GOOD_BYTES = 4 * LIMIT_KB, /* as the page says */
    LIMIT_GREW_BYTES = 3 * LIMIT_MB,
    LIMIT_SHRANK = 1000 - 1,
    LIMIT_FORGOTTEN_SECONDS = 5,
};
