/* See stacks.h. */
#include "os/stacks.h"

#include "base/check.h"
#include "os/symbols.h"
#include "os/thread.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    DEPTH = 48,
    THREADS_MOST = 4096,
    SAMPLES_MOST = 20000, /* 8 MB */
    NAME_SIZE = 16,
    WAIT_MS = 1000, /* for threads to answer */
    STEP_MS = 50,
    SECOND_MS = 1000,
    MS_US = 1000,
    MS_NS = 1000000,
    SECOND_NS = 1000000000,
};

#define STACKS_MAGIC 0x5354434bu

struct sample {
    pid_t thread;
    void *interrupted;  /* where the thread was: frames before that are the handler's */
    _Atomic(int) depth; /* written last; 0: not noted */
    void *frames[DEPTH];
};

struct stacks {
    uint32_t magic;
    pthread_mutex_t asking; /* one at a time; tried, not waited for */
    struct sample *samples;
    size_t capacity;
    atomic_bool is_open;  /* samples are taken */
    atomic_size_t inside; /* handlers that run */
    atomic_size_t next;
    struct symbols *symbols;
};

/* --- the handler --- */

static void *interrupted_at(const void *context)
{
    const ucontext_t *machine = context;
#if defined(__x86_64__)
    return (void *)machine->uc_mcontext.gregs[REG_RIP]; /* NOLINT(performance-no-int-to-ptr) */
#elif defined(__aarch64__)
    return (void *)machine->uc_mcontext.pc; /* NOLINT(performance-no-int-to-ptr) */
#else
    (void)machine;
    return NULL;
#endif
}

static void note(struct stacks *stacks, const void *context)
{
    size_t index = atomic_fetch_add(&stacks->next, 1);
    if (index >= stacks->capacity)
        return;
    struct sample *sample = &stacks->samples[index];
    sample->thread = (pid_t)syscall(SYS_gettid);
    sample->interrupted = interrupted_at(context);
    atomic_store(&sample->depth, backtrace(sample->frames, DEPTH));
}

static void handle(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    struct stacks *stacks = info->si_value.sival_ptr;
    bool is_ours =
        info->si_code == SI_TIMER || (info->si_code == SI_QUEUE && info->si_pid == getpid());
    (void)number;
    if (!is_ours || stacks == NULL)
        return;
    atomic_fetch_add(&stacks->inside, 1);
    if (atomic_load(&stacks->is_open))
        note(stacks, context);
    atomic_fetch_sub(&stacks->inside, 1);
    errno = kept;
}

static status take_signal(void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
    action.sa_sigaction = handler;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGPROF, &action, NULL) != 0)
        return status_from_errno(errno, "cannot take SIGPROF");
    return status_ok();
}

/* --- life --- */

status stacks_open(struct stacks **out)
{
    void *frames[1];
    struct stacks *stacks = *out = calloc(1, sizeof *stacks);
    if (stacks == NULL)
        return status_out_of_memory();
    stacks->magic = STACKS_MAGIC;
    pthread_mutex_init(&stacks->asking, NULL);
    backtrace(frames, 1); /* its first call loads the library that unwinds: not in a handler */
    status s = take_signal(handle);
    if (!status_is_ok(s)) {
        stacks_close(stacks);
        *out = NULL;
    }
    return s;
}

void stacks_close(struct stacks *stacks)
{
    if (stacks == NULL)
        return;
    CHECK_MAGIC(stacks, STACKS_MAGIC);
    signal(SIGPROF, SIG_IGN); /* what is still on its way goes, too */
    free(stacks->samples);
    pthread_mutex_destroy(&stacks->asking);
    stacks->magic = 0;
    free(stacks);
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / SECOND_MS, .tv_nsec = ms % SECOND_MS * MS_NS};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static int64_t now_ms(void)
{
    return thread_steady_ns() / MS_NS;
}

/* --- taking samples --- */

static status begin(struct stacks *stacks, size_t capacity)
{
    TRY(symbols_open(&stacks->symbols));
    stacks->samples = calloc(capacity, sizeof *stacks->samples);
    stacks->capacity = capacity;
    if (stacks->samples == NULL) {
        symbols_close(stacks->symbols);
        return status_out_of_memory();
    }
    atomic_store(&stacks->next, 0);
    atomic_store(&stacks->is_open, true);
    return status_ok();
}

/* No sample changes after it. A handler runs for microseconds, but its thread may not be running.
 */
static void stop(struct stacks *stacks)
{
    atomic_store(&stacks->is_open, false);
    while (atomic_load(&stacks->inside) > 0)
        sleep_ms(1);
}

static size_t taken(const struct stacks *stacks)
{
    size_t next = atomic_load(&stacks->next);
    return next < stacks->capacity ? next : stacks->capacity;
}

static void end(struct stacks *stacks)
{
    stop(stacks);
    free(stacks->samples);
    stacks->samples = NULL;
    symbols_close(stacks->symbols);
}

static status busy(void)
{
    return status_make(STATUS_FAILED_PRECONDITION,
                       "stacks or a profile of this server are being taken already");
}

/* --- threads --- */

struct thread {
    pid_t id;
    char name[NAME_SIZE + 1];
    char state;
    uint64_t ticks; /* of CPU time */
    timer_t timer;
    bool has_timer;
};

struct threads {
    size_t count;
    struct thread list[THREADS_MOST];
};

/* What /proc says of the thread; false: it has gone. "4711 (name) S 1 …", where the name may have
 * anything in it. */
static bool look_up(struct thread *thread)
{
    char path[64], text[1024], state;
    unsigned long user, system;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread->id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    /* NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): the kernel has it at hand */
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return false;
    text[size] = '\0';
    const char *name = strchr(text, '('), *last = strrchr(text, ')');
    if (name == NULL || last == NULL ||
        sscanf(last + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user,
               &system) != 3) /* NOLINT(cert-err34-c): the kernel's own digits */
        return false;
    snprintf(thread->name, sizeof thread->name, "%.*s", (int)(last - name - 1), name + 1);
    for (char *c = thread->name; *c != '\0'; c++)
        *c = *c == ' ' || *c == ';' || *c == '\n' ? '_' : *c;
    thread->state = state;
    thread->ticks = user + system;
    return true;
}

static struct thread *find_thread(struct threads *threads, pid_t id)
{
    for (size_t i = 0; i < threads->count; i++)
        if (threads->list[i].id == id)
            return &threads->list[i];
    return NULL;
}

/* Adds those that are not there yet. */
static status list_threads(struct threads *threads)
{
    const struct dirent *entry;
    DIR *directory = opendir("/proc/self/task");
    if (directory == NULL)
        return status_from_errno(errno, "cannot list threads");
    while ((entry = readdir(directory)) != NULL) { /* NOLINT(concurrency-mt-unsafe): its own */
        struct thread thread = {.id = (pid_t)strtol(entry->d_name, NULL, 10)};
        if (thread.id > 0 && threads->count < THREADS_MOST &&
            find_thread(threads, thread.id) == NULL && look_up(&thread))
            threads->list[threads->count++] = thread;
    }
    closedir(directory);
    return status_ok();
}

/* The innermost frame that is not the handler's; `depth` if there is none. */
static int first_frame(const struct sample *sample)
{
    int depth = atomic_load(&sample->depth), i = 0;
    while (i < depth && sample->frames[i] != sample->interrupted)
        i++;
    return i;
}

/* Has each frame be where its function begins: two samples in the same functions are alike. All
 * but the innermost are where a call returns to, which may be in the function after it. */
static void round_down(const struct stacks *stacks, struct sample *sample)
{
    int depth = atomic_load(&sample->depth), first = first_frame(sample);
    memmove(sample->frames, sample->frames + first, (size_t)(depth - first) * sizeof(void *));
    depth -= first;
    for (int i = 0; i < depth; i++)
        sample->frames[i] =
            symbols_function(stacks->symbols, (char *)sample->frames[i] - (i > 0 ? 1 : 0));
    atomic_store(&sample->depth, depth);
}

static void round_all_down(const struct stacks *stacks)
{
    for (size_t i = 0; i < taken(stacks); i++)
        round_down(stacks, &stacks->samples[i]);
}

static void append_frames(const struct stacks *stacks, const struct sample *sample,
                          struct buffer *out)
{
    int depth = atomic_load(&sample->depth);
    for (int i = 0; i < depth; i++) {
        buffer_append_bytes(out, bytes_of("    "));
        symbols_name(stacks->symbols, sample->frames[i], out);
        buffer_append_byte(out, '\n');
    }
}

/* --- stacks --- */

static void ask_thread(struct stacks *stacks, const struct thread *thread)
{
    siginfo_t info = {.si_signo = SIGPROF, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = stacks;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), thread->id, SIGPROF, &info); /* it may have gone */
}

static size_t answered(const struct stacks *stacks)
{
    size_t count = 0;
    for (size_t i = 0; i < taken(stacks); i++)
        count += atomic_load(&stacks->samples[i].depth) > 0;
    return count;
}

static const struct sample *sample_of(const struct stacks *stacks, pid_t thread)
{
    for (size_t i = 0; i < taken(stacks); i++)
        if (stacks->samples[i].thread == thread && atomic_load(&stacks->samples[i].depth) > 0)
            return &stacks->samples[i];
    return NULL;
}

static void write_thread(const struct stacks *stacks, const struct thread *thread,
                         struct buffer *out)
{
    const struct sample *sample = sample_of(stacks, thread->id);
    double seconds = (double)thread->ticks / (double)sysconf(_SC_CLK_TCK);
    buffer_append_format(out, "%s (%d), state %c, %.2f s of CPU%s\n", thread->name, (int)thread->id,
                         thread->state, seconds, sample == NULL ? ", does not answer" : "");
    if (sample != NULL)
        append_frames(stacks, sample, out);
    buffer_append_byte(out, '\n');
}

static void ask_all(struct stacks *stacks, const struct threads *threads)
{
    int64_t until = now_ms() + WAIT_MS;
    for (size_t i = 0; i < threads->count; i++)
        ask_thread(stacks, &threads->list[i]);
    while (answered(stacks) < threads->count && now_ms() < until)
        sleep_ms(1);
}

static status write_all(struct stacks *stacks, struct threads *threads, struct buffer *out)
{
    TRY(list_threads(threads));
    TRY(begin(stacks, threads->count + 1));
    ask_all(stacks, threads);
    stop(stacks);
    round_all_down(stacks);
    for (size_t i = 0; i < threads->count; i++)
        write_thread(stacks, &threads->list[i], out);
    end(stacks);
    return out->failed ? status_out_of_memory() : status_ok();
}

status stacks_write(struct stacks *stacks, struct buffer *out)
{
    CHECK_MAGIC(stacks, STACKS_MAGIC);
    if (pthread_mutex_trylock(&stacks->asking) != 0)
        return busy();
    struct threads *threads = calloc(1, sizeof *threads);
    status s = threads == NULL ? status_out_of_memory() : write_all(stacks, threads, out);
    free(threads);
    pthread_mutex_unlock(&stacks->asking);
    return s;
}

/* --- a profile --- */

/* The clock of another thread's CPU time, as Linux numbers them. */
static clockid_t clock_of(pid_t thread)
{
    enum { OF_ONE_THREAD = 4, SCHEDULED = 2, SHIFT = 3 };
    return (clockid_t)(~(unsigned)thread << SHIFT | OF_ONE_THREAD | SCHEDULED);
}

/* A thread that has gone meanwhile gets none. */
static void set_timer(struct stacks *stacks, struct thread *thread, unsigned per_second)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    struct timespec period = {.tv_sec = per_second == 1,
                              .tv_nsec = per_second == 1 ? 0 : SECOND_NS / (long)per_second};
    struct itimerspec times = {.it_interval = period, .it_value = period};
    event.sigev_value.sival_ptr = stacks;
    event._sigev_un._tid = thread->id;
    if (thread->has_timer || timer_create(clock_of(thread->id), &event, &thread->timer) != 0)
        return;
    thread->has_timer = true;
    timer_settime(thread->timer, 0, &times, NULL); /* fails for one that has gone */
}

static status set_timers(struct stacks *stacks, struct threads *threads, unsigned per_second)
{
    TRY(list_threads(threads));
    for (size_t i = 0; i < threads->count; i++)
        set_timer(stacks, &threads->list[i], per_second);
    return status_ok();
}

static void clear_timers(struct threads *threads)
{
    for (size_t i = 0; i < threads->count; i++)
        if (threads->list[i].has_timer)
            timer_delete(threads->list[i].timer);
}

static status sample_all(struct stacks *stacks, struct threads *threads,
                         const struct stacks_profile *wanted)
{
    int64_t begun = now_ms(), looked = begun, now;
    status s = set_timers(stacks, threads, wanted->per_second);
    while (status_is_ok(s) && (now = now_ms()) < begun + wanted->duration_us / MS_US &&
           (wanted->goes_on == NULL || wanted->goes_on(wanted->context))) {
        sleep_ms(STEP_MS);
        if (now - looked < SECOND_MS)
            continue;
        looked = now;
        s = set_timers(stacks, threads, wanted->per_second);
    }
    clear_timers(threads);
    stop(stacks);
    return s;
}

static int compare_samples(const void *a, const void *b)
{
    const struct sample *left = a, *right = b;
    if (left->thread != right->thread)
        return left->thread < right->thread ? -1 : 1;
    if (left->depth != right->depth)
        return left->depth < right->depth ? -1 : 1;
    return memcmp(left->frames, right->frames, (size_t)left->depth * sizeof *left->frames);
}

/* The outermost first. */
static void fold(const struct stacks *stacks, struct threads *threads, const struct sample *sample,
                 struct buffer *out)
{
    const struct thread *thread = find_thread(threads, sample->thread);
    buffer_append_bytes(out, bytes_of(thread == NULL ? "?" : thread->name));
    for (int i = sample->depth - 1; i >= 0; i--) {
        buffer_append_byte(out, ';');
        symbols_name(stacks->symbols, sample->frames[i], out);
    }
}

static void fold_all(struct stacks *stacks, struct threads *threads, struct buffer *out,
                     struct stacks_counts *counts)
{
    size_t count = taken(stacks), first = 0;
    counts->lost = atomic_load(&stacks->next) - count;
    round_all_down(stacks);
    qsort(stacks->samples, count, sizeof *stacks->samples, compare_samples);
    for (size_t i = 1; i <= count; i++) {
        const struct sample *begun = &stacks->samples[first];
        if (i < count && compare_samples(begun, &stacks->samples[i]) == 0)
            continue;
        if (begun->depth > 0) {
            fold(stacks, threads, begun, out);
            buffer_append_format(out, " %zu\n", i - first);
            counts->samples += i - first;
        } else {
            counts->lost += i - first;
        }
        first = i;
    }
}

static status profile(struct stacks *stacks, struct threads *threads,
                      const struct stacks_profile *wanted, struct buffer *out,
                      struct stacks_counts *counts)
{
    TRY(begin(stacks, SAMPLES_MOST));
    status s = sample_all(stacks, threads, wanted);
    if (status_is_ok(s))
        fold_all(stacks, threads, out, counts);
    end(stacks);
    if (status_is_ok(s) && out->failed)
        return status_out_of_memory();
    return s;
}

status stacks_profile(struct stacks *stacks, const struct stacks_profile *wanted,
                      struct buffer *out, struct stacks_counts *counts)
{
    CHECK_MAGIC(stacks, STACKS_MAGIC);
    CHECK(wanted->per_second > 0);
    *counts = (struct stacks_counts){0};
    if (pthread_mutex_trylock(&stacks->asking) != 0)
        return busy();
    struct threads *threads = calloc(1, sizeof *threads);
    status s =
        threads == NULL ? status_out_of_memory() : profile(stacks, threads, wanted, out, counts);
    free(threads);
    pthread_mutex_unlock(&stacks->asking);
    return s;
}
