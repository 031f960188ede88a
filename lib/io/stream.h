/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte streams. A source reads a file, standard input or memory and decompresses zstd
 * frames (recognised by their magic) while streaming: any number of them, skippable
 * ones too, windows up to 128 MiB (what `zstd -d` takes without --long). A frame cut
 * short and bytes after a frame that are none are errors. A sink writes a file,
 * standard output or memory. Messages name the stream. A stream or sink that has failed
 * goes on failing with the same message.
 */
#ifndef FT_IO_STREAM_H
#define FT_IO_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

typedef struct ft_stream ft_stream;

/* Open `path` for reading; NULL or "-" is standard input, named "(standard input)". */
ft_status ft_stream_open(ft_stream **out, const char *path, ft_error *err);

/* Read `bytes` bytes at `data`, which stay the caller's and outlive the stream. */
ft_status ft_stream_open_memory(ft_stream **out, const void *data, size_t bytes,
                                const char *name, ft_error *err);

const char *ft_stream_name(const ft_stream *s);

/* Bytes of (decompressed) input consumed so far: the offset to name in messages. */
uint64_t ft_stream_offset(const ft_stream *s);

/* Make at least `want` bytes available if the input has them, without consuming any.
 * *avail < want only at end of input. *data stays valid until the next call on s.
 * Cheap when the bytes are buffered already. */
ft_status ft_stream_peek(ft_stream *s, size_t want, const uint8_t **data, size_t *avail,
                         ft_error *err);

/* Consume n bytes that a peek showed. */
void ft_stream_skip(ft_stream *s, size_t n);

/* Read up to n bytes; *got < n only at end of input. */
ft_status ft_stream_read(ft_stream *s, void *to, size_t n, size_t *got, ft_error *err);

/* The same, but less is enough: what there is, at least a byte, 0 only at the end. What
 * was read is in *got whatever the outcome. */
ft_status ft_stream_read_some(ft_stream *s, void *to, size_t n, size_t *got,
                              ft_error *err);

/* Wait up to ms milliseconds for input. False: there is none yet. */
bool ft_stream_wait(const ft_stream *s, int ms);

/* Would reading go on without waiting (bytes buffered, input readable, or at its end)?
 */
bool ft_stream_ready(ft_stream *s);

void ft_stream_close(ft_stream *s);

typedef struct ft_sink ft_sink;

/* Open `path` for writing (created, truncated); NULL or "-" is standard output, named
 * "(standard output)". */
ft_status ft_sink_open(ft_sink **out, const char *path, ft_error *err);

/* Write to path's folder under a temporary name that carries this process's number.
 * ft_sink_commit syncs and renames it to path; closing without commit, or a signal
 * handler that calls ft_sink_abort_all, removes it. An existing path's permissions are
 * kept; a symbolic link is followed. Standard output, as in ft_sink_open, and a path
 * that exists and is no regular file (a device, a pipe) are written directly. */
ft_status ft_sink_open_atomic(ft_sink **out, const char *path, ft_error *err);

/* Append to *b, which stays the caller's. */
ft_status ft_sink_open_memory(ft_sink **out, ft_buf *b, ft_error *err);

ft_status ft_sink_write(ft_sink *s, const void *data, size_t bytes, ft_error *err);

/* Overwrite `bytes` bytes at `offset`, which have been written before (files only). */
ft_status ft_sink_rewrite(ft_sink *s, uint64_t offset, const void *data, size_t bytes,
                          ft_error *err);
ft_status ft_sink_printf(ft_sink *s, ft_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
uint64_t ft_sink_offset(const ft_sink *s);
ft_status ft_sink_flush(ft_sink *s, ft_error *err);
ft_status ft_sink_commit(ft_sink *s, ft_error *err);

/* Flush and close; s is gone whatever is returned. A failed flush is an error. */
ft_status ft_sink_close(ft_sink *s, ft_error *err);

/* Remove the temporary files of atomic sinks that are open. Safe in a signal handler.
 */
void ft_sink_abort_all(void);

/* May `sink` (opened by name) seek, so that ft_sink_rewrite works? */
bool ft_sink_seekable(const ft_sink *s);

#endif
