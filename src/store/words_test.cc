/* What RocksDB says, in the server's words. */
#include "store/internal.h"

extern "C" {
#include "base/testing/testing.h"
}

namespace {

void assert_words(const char *theirs, const char *ours)
{
    assert_string_equal(words_of(theirs).c_str(), ours);
}

void words_of_a_disk(void **)
{
    assert_words("IO error: No space left on device: While appending to file: /d/000004.log: No "
                 "space left on device",
                 "cannot write /d/000004.log: no space is left on its disk");
    assert_words("IO error: write-ahead log: sync failed: IO error: While fdatasync: "
                 "/d/000004.log: Input/output error",
                 "cannot sync /d/000004.log: Input/output error");
    assert_words("IO error: No such file or directory: While open a file for random read: "
                 "/d/000012.ldb: No such file or directory",
                 "cannot open /d/000012.sst: No such file or directory");
    assert_words("IO error: While pread offset 4096 len 16384: /d/000014.sst: Input/output error",
                 "cannot read /d/000014.sst: Input/output error");
    assert_words("IO error: While doing something new: /d/x: Read-only file system",
                 "cannot use /d/x: Read-only file system");
    assert_words("IO error: while link file to /d/b: /a dir/with: colon.sst: Too many links",
                 "cannot link /a dir/with: colon.sst: Too many links");
}

void words_of_damage(void **)
{
    assert_words("Corruption: block checksum mismatch: stored = 3417, computed = 27, type = 4  in "
                 "/d/000014.sst offset 393450 size 16380",
                 "the file /d/000014.sst is damaged at byte 393450");
    assert_words("Corruption: file is too short (12 bytes) to be an sstable: /d/000014.sst",
                 "the file /d/000014.sst is damaged");
    assert_words("Corruption: file is too short (12 bytes) to be an sstable/d/000014.sst in file "
                 "/d/MANIFEST-000005",
                 "the file /d/000014.sst is damaged");
    assert_words("[db/x.cc:1] Corruption: CURRENT file corrupted: /d/MANIFEST-000005, and more",
                 "the file /d/MANIFEST-000005 is damaged");
    assert_words("Corruption: IO error: No such file or directory: While open a file for random "
                 "read: /d/000014.ldb: No such file or directory The file /d/MANIFEST-000005 may "
                 "be corrupted.",
                 "the file /d/000014.sst is missing");
    assert_words("Corruption: Bad table magic number: expected 1, found 2 in /d/000014.sst The "
                 "file /d/MANIFEST-000005 may be corrupted.",
                 "the file /d/000014.sst is damaged");
    assert_words("Corruption: Sst file size mismatch: /d/000014.sst. Size recorded in manifest 1, "
                 "actual size 2",
                 "the file /d/000014.sst is damaged");
}

void unknown_texts_stay(void **)
{
    assert_words("Corruption: something odd", "");
    assert_words("Invalid argument: While we are at it", "");
    assert_words("", "");
    assert_string_equal(words_of(rocksdb::Status::Busy("a lock")).c_str(), "store: busy: a lock");
}

/* Found by the breaker of issue 20: health ended in ": ". */
void words_of_a_status_without_any(void **)
{
    assert_string_equal(words_of(rocksdb::Status::Aborted()).c_str(), "store: given up");
    assert_string_equal(
        words_of(rocksdb::Status::IOError("write-ahead log: sync failed", "IO error: ")).c_str(),
        "store: the disk has failed: write-ahead log: sync failed");
    assert_string_equal(words_of(rocksdb::Status::Corruption("something odd")).c_str(),
                        "store: what is stored is damaged: something odd");
    assert_string_equal(words_of(rocksdb::Status::ColumnFamilyDropped()).c_str(),
                        "store: Column family dropped");
}

void assert_line(const char *theirs, const char *message, const char *cause)
{
    const store_line line = line_in_words(theirs);
    if (message == nullptr)
        assert_null(line.ours);
    else
        assert_string_equal(line.ours, message);
    assert_string_equal(cause_in_words(theirs).c_str(), cause);
}

void words_of_rocksdb_log_lines(void **)
{
    assert_line("[db/column_family.cc:944] [7] Stopping writes because we have 4 immutable "
                "memtables (waiting for flush), max_write_buffer_number is set to 4",
                "the store lets nobody write until it has caught up",
                "write buffers wait to be flushed");
    assert_line("[db/column_family.cc:1001] [7] Stalling writes because we have 20 level-0 files "
                "rate 16777216",
                "the store slows writes down until it has caught up",
                "tables of level 0 wait to be compacted");
    assert_line("[db/column_family.cc:1025] [7] Stalling writes because of estimated pending "
                "compaction bytes 68719476736 rate 16777216",
                "the store slows writes down until it has caught up",
                "too much waits to be compacted");
    assert_line("[db/db_impl/db_impl_compaction_flush.cc:2893] Waiting after background flush "
                "error: IO error: While fsync: /d/000009.sst: Input/output errorAccumulated "
                "background error counts: 1",
                "a flush has failed, and is tried again",
                "cannot sync /d/000009.sst: Input/output error");
    assert_line("[db/error_handler.cc:397] Background IO error IO error: No space left on device: "
                "While appending to file: /d/000009.sst: No space left on device",
                "the disk has failed the store",
                "cannot write /d/000009.sst: no space is left on its disk");
    assert_line("[db/db_impl/db_impl_files.cc:369] [JOB 4] Tried to delete a non-existing file "
                "/d/000004.log type=0 #4 -- IO error: No such file or directory: while unlink() "
                "file: /d/000004.log: No such file or directory",
                "a file that is to be deleted is gone already",
                "cannot remove /d/000004.log: No such file or directory");
    assert_line("[db/db_impl/db_impl_compaction_flush.cc:3496] Compaction error: Corruption: block "
                "checksum mismatch: stored = 1, computed = 2 in /d/000014.sst offset 7 size 8",
                "a compaction has failed", "the file /d/000014.sst is damaged at byte 7");
    assert_line(
        "[db/version_set.cc:5250] Error in committing version edit to MANIFEST: ColumnFamily: "
        "1",
        "the list of tables cannot be written", "");
    assert_line("[db/db_impl/db_impl.cc:3218] Dropping column family with id 3 FAILED -- IO error: "
                "While append to file: /d/MANIFEST-000005: Input/output error",
                "a keyspace cannot be dropped",
                "cannot write /d/MANIFEST-000005: Input/output error");
    assert_line("[table/block.cc:1] Corruption: bad block in /d/000014.sst",
                "the store has trouble with a file", "the file /d/000014.sst is damaged");
    assert_line("[db/version_set.cc:723] At least one SST file opened without unique ID to verify: "
                "12.sst",
                nullptr, "");
    assert_line(
        "[db/db_filesnapshot.cc:40] File Deletions Disabled, but already disabled. Counter: 2",
        nullptr, "");
    assert_line(
        "[db/db_filesnapshot.cc:66] File Deletions Enable, but not really enabled. Counter: "
        "1",
        nullptr, "");
    assert_line(
        "[db/db_impl/db_impl_files.cc:376] [JOB 2] Failed to delete /d/000013.log type=0 #13 "
        "-- Resource busy: a salvage is not finished",
        nullptr, "");
    assert_line("[x.cc:1] a line that nobody knows", "RocksDB says", "");
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(words_of_a_disk),
        cmocka_unit_test(words_of_damage),
        cmocka_unit_test(unknown_texts_stay),
        cmocka_unit_test(words_of_a_status_without_any),
        cmocka_unit_test(words_of_rocksdb_log_lines),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
