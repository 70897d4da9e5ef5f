/* A sink: rows written to a file, CSV, JSON lines or Avro, plain or gzip (formats/row_encoder.h,
 * formats/output.h). A row that the file's form cannot hold is refused. */
#ifndef TRESTLE_TRANSFER_FILE_SINK_H
#define TRESTLE_TRANSFER_FILE_SINK_H

#include "client/client_session.h"
#include "formats/row_file.h"
#include "formats/row_sum.h"
#include "transfer/sink.h"

struct file_sink;

struct file_sink_options {
    const char *path; /* "-": standard output, of which nothing can be gone on with */
    bool is_gzip;
    const struct row_format *format;
    bool has_timestamps;            /* what is written has those of its cells: for the sum */
    struct client_session *session; /* which waits, where rows come too fast */
    uint64_t rows_per_second;       /* 0: as fast as it goes */
    struct transfer_refusal refusal;
};

/* What the options point to must outlive the sink. Fails as row_encoder_create and, for standard
 * output, output_open; a file is opened with the first row, or when it is gone on with. */
status file_sink_create(const struct file_sink_options *options, struct file_sink **out);
void file_sink_destroy(struct file_sink *sink); /* NULL is fine */

struct transfer_sink file_sink_interface(struct file_sink *sink);

/* The sum of the rows that are in the file. */
const struct row_sum *file_sink_sum(const struct file_sink *sink);

#endif
