/* What RocksDB tells of flushes, in the order of its calls that no test brings about by itself: a
 * flush for which another one has taken all that there was, while it waited for the sync of closed
 * logs, is told as begun and never as ended. */
#include "store/internal.h"

#include "rocksdb/listener.h"

#include <filesystem>

extern "C" {
#include "base/testing/testing.h"
}

using rocksdb::TableFileCreationReason;

namespace {

enum : uint64_t { KEYSPACE = 2 };

struct watch {
    int begun = 0, ended = 0;
};

void note(void *context, enum store_large_work what)
{
    auto *seen = static_cast<watch *>(context);
    seen->begun += what == STORE_LARGE_BEGINS || what == STORE_LARGE_FLUSH_BEGINS;
    seen->ended += what == STORE_LARGE_ENDS;
}

struct log silent_log()
{
    struct log log = {};
    log.fd = -1;
    log.level = LOG_ERROR;
    log.clock = clock_system();
    return log;
}

std::string make_directory()
{
    std::string name = (std::filesystem::temp_directory_path() / "trestle-store-XXXXXX").string();
    assert_non_null(mkdtemp(&name[0]));
    return name;
}

/* A store with a keyspace that large values are expected in. */
class fixture {
  public:
    fixture() : directory(make_directory()), log(silent_log())
    {
        store_options options = {};
        options.directory = directory.c_str();
        options.fold = &fold;
        options.log = &log;
        options.cache_bytes = 8 << 20;
        options.write_buffer_bytes = 16 << 20;
        options.open_files = 200;
        options.background_threads = 2;
        options.on_large_work = note;
        options.large_work_context = &seen;
        assert_ok(store_open(&options, &at));
        assert_ok(store_keyspaces_create(at, KEYSPACE, 1));
        keyspace_expect_large(store_keyspace_find(at, KEYSPACE));
        told = make_listener(at);
    }

    ~fixture()
    {
        store_close(at);
        std::filesystem::remove_all(directory);
    }

    std::string name() { return store_keyspace_find(at, KEYSPACE)->handle->GetName(); }

    void flush_begins()
    {
        rocksdb::FlushJobInfo info;
        info.cf_name = name();
        told->OnFlushBegin(at->db, info);
    }

    void table_begins(TableFileCreationReason reason)
    {
        rocksdb::TableFileCreationBriefInfo info;
        info.cf_name = name();
        info.reason = reason;
        told->OnTableFileCreationStarted(info);
    }

    /* Of which nothing has come: others would wait until it is listed. */
    void table_ends(TableFileCreationReason reason)
    {
        rocksdb::TableFileCreationInfo info;
        info.cf_name = name();
        info.reason = reason;
        info.status = rocksdb::Status::Aborted();
        told->OnTableFileCreated(info);
    }

    watch seen;

  private:
    std::string directory;
    struct log log;
    store_fold fold = {}; /* nothing is written */
    store *at = nullptr;
    std::shared_ptr<rocksdb::EventListener> told;
};

void a_flush_that_makes_no_table_is_no_large_work(void **)
{
    fixture f;
    f.flush_begins();
    assert_int_equal(f.seen.begun, 0);
}

void a_flush_is_large_work_while_its_table_is_made(void **)
{
    fixture f;
    f.flush_begins();
    f.table_begins(TableFileCreationReason::kFlush);
    assert_int_equal(f.seen.begun, 1);
    assert_int_equal(f.seen.ended, 0);
    f.table_ends(TableFileCreationReason::kFlush);
    assert_int_equal(f.seen.ended, 1);
}

/* A compaction is told before it makes any table. */
void a_table_of_a_compaction_is_none(void **)
{
    fixture f;
    f.table_begins(TableFileCreationReason::kCompaction);
    f.table_ends(TableFileCreationReason::kCompaction);
    assert_int_equal(f.seen.begun, 0);
    assert_int_equal(f.seen.ended, 0);
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(a_flush_that_makes_no_table_is_no_large_work),
        cmocka_unit_test(a_flush_is_large_work_while_its_table_is_made),
        cmocka_unit_test(a_table_of_a_compaction_is_none),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
