#include "base/low.h"
#include "proto/bigtable.pb-c.h"
#include "grpc.h"
#include <nghttp2/nghttp2.h>
#include "base/low_private.h"
