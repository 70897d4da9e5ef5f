/* What of a keyspace is out of service, and the thread that looks at damaged tables. A part of
 * internal.h, which alone includes it, where it needs it. */
#ifndef TRESTLE_STORE_DAMAGE_WATCH_H
#define TRESTLE_STORE_DAMAGE_WATCH_H

/* --- closed_ranges.cc --- */

/* What of a keyspace is out of service. Any thread; free of cost while nothing is. */
class closed_ranges {
  public:
    struct range {
        uint64_t file;
        uint64_t block; /* its offset plus 1; 0: the whole of it */
        std::string from;
        std::string to; /* exclusive; empty: no bound */
        std::string words;
        bool is_remembered; /* by the store's owner, beyond the store's end */
        uint64_t opened;    /* which of the store's openings ended it; 0: it is closed */
        bool is_healed;     /* keyspace_note_healed */
    };

    bool any() const { return count.load(std::memory_order_acquire) != 0; }
    /* Whether one is, or was when a reader began: after so many of the store's openings. */
    bool concerns(uint64_t since) const
    {
        return any() || newest_opening.load(std::memory_order_acquire) > since;
    }
    /* OK, or DATA_LOSS in the words of the first range that [from, to) meets; UNAVAILABLE if that
     * was opened since the reader began, which may see what it hid. Writers call check_write: that
     * a thread reads what was healed (store_read_healed) is no leave to write there. */
    status check(const rocksdb::Slice &from, const rocksdb::Slice &to, uint64_t since) const;
    status check_write(const rocksdb::Slice &from, const rocksdb::Slice &to) const;
    /* Whether it is to be told: it is new, or not remembered. */
    bool add(const range &range);
    /* Notes that a closed range is remembered. */
    void remember(const range &range);
    void say(const range &range); /* in these words, and whether it is remembered */
    void note_healed(const rocksdb::Slice &from, const rocksdb::Slice &to);
    /* That one of the file, or (0) all that lie in it wholly. */
    void open(uint64_t file, const rocksdb::Slice &from, const rocksdb::Slice &to,
              uint64_t opening);
    std::vector<uint64_t> files() const; /* their numbers, with repetitions */
    std::vector<range> all() const;      /* that are closed */
    bool remembers(uint64_t file) const; /* all ranges of that; 0: of any */
    /* Whether all that are closed of that file lie in it wholly. */
    bool lie_in(uint64_t file, const rocksdb::Slice &from, const rocksdb::Slice &to) const;
    /* Whether the stand-in (NULL: none) has the place of all that was closed for. */
    bool are_covered(uint64_t file, const stand_in *instead) const;

  private:
    range *find(uint64_t file, const rocksdb::Slice &from, const rocksdb::Slice &to);
    status check(const rocksdb::Slice &from, const rocksdb::Slice &to, uint64_t since,
                 bool passes_healed) const;

    mutable std::shared_mutex mutex; /* of `ranges` */
    std::vector<range> ranges;       /* those that were opened, too, as long as the store is open */
    std::atomic<size_t> count{0};    /* that are closed */
    std::atomic<uint64_t> newest_opening{0};
};

/* As the store's owner is told of it; as long as the range is there. */
struct store_damage as_told(uint64_t keyspace, const closed_ranges::range &range);
/* Whether the keyspace is compacted from now on. */
status let_compact(struct keyspace *keyspace, bool is_let);

/* --- damage.cc --- */

/* All table files of a keyspace. */
std::vector<rocksdb::SstFileMetaData> tables_of(const struct keyspace *keyspace);
/* Whether compactions may take the table away: all that its ranges were closed for has a stand-in
 * for good. What has none may be sound, and would be lost by a repair that does not find it. */
bool is_given_up(const struct keyspace *keyspace, uint64_t file);

/* Looks at tables that were noted as damaged, on a thread of its own, and takes out of service what
 * they cannot answer for. */
class damage_watch {
  public:
    damage_watch(struct store *store, const store_options *options);
    ~damage_watch();

    /* Closes what these tables may hold, before the first read: they have stand-ins. */
    void see_at_open(const std::vector<rocksdb::LiveFileMetaData> &tables);
    void start();
    void stop(); /* before the database is closed */

    /* A read or a compaction has met damage: RocksDB's words, which may name the table, and if not,
     * all tables of the keyspace are looked at. Any thread; does not wait. */
    void note(uint64_t keyspace, const std::string &words);
    void note(uint64_t keyspace, uint64_t file);
    /* Likewise, of a reader that may wait: until what it has met is closed, in its words, or some
     * seconds have passed. */
    void note_and_wait(uint64_t keyspace, const std::string &words);
    void note_failed_compaction(uint64_t keyspace, const std::string &words);
    /* Some of its ranges are open again. */
    void opened(struct keyspace *keyspace);
    /* Looks at a table now, and closes what is damaged; what cannot be read, and was closed before,
     * is given up. */
    void look_now(uint64_t keyspace, const rocksdb::SstFileMetaData &file);
    /* The same of one whose keyspace is not known; nothing is given up. */
    void look_for(uint64_t file);
    /* Looks at all tables that are chosen by their numbers. CANCELLED by the pacer. */
    status look_at_all(const std::function<bool(uint64_t)> &is_chosen, const table_pacer &pacer,
                       bool is_direct);
    /* Looks at all tables of one keyspace, unless the store is about to be closed. */
    status look_at_keyspace(uint64_t keyspace);

    /* Held while a keyspace is asked for its files, and while what was found is closed and told: it
     * must not go meanwhile. */
    std::mutex looking;

  private:
    struct job {
        uint64_t keyspace;
        uint64_t file; /* 0: all */
        bool operator<(const job &other) const
        {
            return keyspace != other.keyspace ? keyspace < other.keyspace : file < other.file;
        }
    };

    using moment = std::chrono::steady_clock::time_point;
    enum manner { CACHED, DIRECT, GIVING_UP };

    /* Of compactions, since damage was found in their keyspace. */
    struct failures {
        unsigned count = 0;
        moment last;
    };

    /* What was closed, and is to be told. */
    struct found {
        struct keyspace *keyspace;
        closed_ranges::range range;
    };

    void run();
    std::vector<rocksdb::SstFileMetaData> files_of(uint64_t keyspace);
    void look(const job &job, const table_pacer &pacer);
    void look_at(uint64_t keyspace, const rocksdb::SstFileMetaData &file, const table_pacer &pacer,
                 enum manner manner);
    status look_at_some(uint64_t keyspace, const std::function<bool(uint64_t)> &is_chosen,
                        const table_pacer &pacer, bool is_direct);
    void find_deleted(const struct keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                      table_findings *findings);
    bool close(struct keyspace *keyspace, const rocksdb::SstFileMetaData &file,
               const table_findings &findings);
    void close_one(struct keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                   const bad_block &block, const std::string &why);
    void tell_news();
    bool keep(const rocksdb::SstFileMetaData &file);
    void stand_in_for(struct keyspace *keyspace, const rocksdb::SstFileMetaData &file,
                      const table_findings &findings, bool may_give_up);
    void update_compactions(struct keyspace *keyspace);
    void update_compactions(uint64_t keyspace);
    unsigned failed_compactions(uint64_t keyspace);
    void forgive_failures(uint64_t keyspace);
    void forgive_old_failures();
    bool is_waited_for(const job &job, const table_findings &findings);
    std::vector<job> unreadable_for_long();
    void try_again();
    void do_job(const job &job);
    bool is_due(const job &job);
    table_pacer until_stopped() const;
    bool is_stopping() const { return stopping.load(std::memory_order_relaxed); }

    struct store *const store;
    bool (*const listener)(void *, const struct store_damage *);
    void *const listener_context;
    const std::chrono::microseconds patience;
    std::thread thread;
    std::atomic<bool> stopping{false};
    std::mutex mutex; /* of the five below */
    std::set<job> jobs;
    job current = {};                    /* what the thread looks at */
    std::map<uint64_t, failures> failed; /* of keyspaces */
    std::condition_variable wake;
    std::condition_variable done;     /* with a job */
    std::map<job, moment> looked;     /* the thread's own */
    std::vector<found> news;          /* with `looking`, as the next */
    std::map<job, moment> unreadable; /* since when; of each file that is */
};

#endif
