/* libcupti.so.13: activity records of what the bed ran, and callbacks about graphs' nodes. Records are handed over when they are flushed. */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <unistd.h>

#include "abi.h"
#include "bed.h"

#define API extern "C" __attribute__((visibility("default"))) int

using namespace bed;

enum { OK = 0, INVALID_PARAMETER = 1, MAX_LIMIT_REACHED = 12, INVALID_OPERATION = 7, QUEUE_EMPTY = 16, MULTIPLE_SUBSCRIBERS = 39, UNKNOWN = 999 };
enum { KIND_COPY = 1, KIND_FILL = 2, KIND_DRIVER = 4, KIND_RUNTIME = 5, KIND_KERNEL = 10, KIND_PEER_COPY = 22, KIND_EXTERNAL = 39 };
enum { PEER_TO_PEER = 10 }; /* CUPTI_ACTIVITY_MEMCPY_KIND_PTOP */
enum { DOMAIN_RESOURCE = 3, NODE_CREATED = 13, NODE_CLONED = 20, GRAPH_CREATED = 9, EXEC_CREATED = 18 };

typedef void (*Callback)(void * user, int domain, uint32_t id, const void * data);
typedef void (*Request)(uint8_t ** buffer, size_t * size, size_t * most);
typedef void (*Complete)(void * context, uint32_t stream, uint8_t * buffer, size_t size, size_t valid);

struct State {
    std::mutex mutex;
    Callback callback = nullptr;
    void * user = nullptr;
    std::set<uint64_t> callbacks; /* domain << 32 | id */
    std::set<int> kinds;
    uint64_t (*timestamp)() = nullptr;
    Request request = nullptr;
    Complete complete = nullptr;
    std::vector<std::pair<uint64_t, std::string>> records; /* when the host may know of it; its bytes */
    size_t dropped = 0, flushes = 0, count = 0;
    bool is_subscribed = false;
};

static State & state() {
    static State * all = new State;
    return *all;
}

static thread_local std::vector<std::pair<int, uint64_t>> external;

static uint64_t real_time() {
    timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    return (uint64_t) real.tv_sec * 1000000000u + (uint64_t) real.tv_nsec;
}

/* The clock that the subscriber chose, against that of the bed: read once, for all records. */
static uint64_t offset() {
    static const uint64_t chosen = [] {
        for (int tries = 0;; tries++) {
            const uint64_t before = now(), time = state().timestamp ? state().timestamp() : real_time(), after = now();
            if (after - before < 500 || tries == 1000) return time - before;
        }
    }();
    return chosen;
}

template <typename Record> static void add(const Record & record, uint64_t end) {
    State & all = state();
    all.records.emplace_back(end, std::string((const char *) &record, sizeof(record)));
}

static const char * kept(const std::string & name) {
    static auto * names = new std::set<std::string>;
    return names->insert(name).first->c_str();
}

/* What all records of work have. */
template <typename Record> static void fill_in(Record & record, const Ran & what, uint64_t start, uint64_t end) {
    record.start = start;
    record.end = end;
    record.device = what.device;
    record.context = what.device + 1;
    record.stream = what.stream;
    record.correlation = what.correlation;
    record.node = what.node;
    record.graph = what.graph;
    add(record, what.end);
}

static void ran(const Ran & what) {
    State & all = state();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const uint64_t difference = offset();
    uint64_t start = what.start + difference, end = what.end + difference;
    if (has_fault("zero-times") && ++all.count % 50 == 0) start = end = 0;
    if (what.work.kind == Work::KERNEL && all.kinds.count(KIND_KERNEL)) {
        ActivityKernel record = {};
        record.kind = KIND_KERNEL;
        for (int i = 0; i < 3; i++) {
            record.grid[i] = (int32_t) what.work.grid[i];
            record.block[i] = (int32_t) what.work.block[i];
        }
        record.name = kept(what.work.name);
        fill_in(record, what, start, end);
    }
    if (what.work.kind == Work::COPY && what.work.copy_kind == PEER_TO_PEER && all.kinds.count(KIND_PEER_COPY)) {
        ActivityPeerCopy record = {};
        record.kind = KIND_PEER_COPY;
        record.copy_kind = PEER_TO_PEER;
        record.bytes = what.work.bytes;
        fill_in(record, what, start, end);
    }
    if (what.work.kind == Work::COPY && what.work.copy_kind != PEER_TO_PEER && all.kinds.count(KIND_COPY)) {
        ActivityCopy record = {};
        record.kind = KIND_COPY;
        record.copy_kind = (uint8_t) (what.work.copy_kind == 3 ? 8 : what.work.copy_kind); /* CUPTI_ACTIVITY_MEMCPY_KIND_DTOD is 8 */
        record.bytes = what.work.bytes;
        fill_in(record, what, start, end);
    }
    if (what.work.kind == Work::FILL && all.kinds.count(KIND_FILL)) {
        ActivityFill record = {};
        record.kind = KIND_FILL;
        record.bytes = what.work.bytes;
        fill_in(record, what, start, end);
    }
}

static void called(uint32_t correlation, uint64_t start, uint64_t end, uint32_t id) {
    State & all = state();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (!all.kinds.count(KIND_RUNTIME)) return;
    if (all.kinds.count(KIND_EXTERNAL)) {
        for (const auto & pushed : external) {
            ActivityExternal record = {};
            record.kind = KIND_EXTERNAL;
            record.external_kind = (uint32_t) pushed.first;
            record.external = pushed.second;
            record.correlation = correlation;
            add(record, end);
        }
    }
    ActivityCall record = {};
    record.kind = KIND_RUNTIME;
    record.id = id;
    const uint64_t difference = offset();
    record.start = start + difference;
    record.end = end + difference;
    record.process = (uint32_t) getpid();
    record.thread = (uint32_t) gettid();
    record.correlation = correlation;
    add(record, end);
}

static void changed(Change change, const Graph & graph, const Node * node, uint64_t original) {
    State & all = state();
    static const uint32_t ids[] = {NODE_CREATED, NODE_CLONED, GRAPH_CREATED, EXEC_CREATED};
    const uint32_t id = ids[(int) change];
    if (!all.callback || !all.callbacks.count((uint64_t) DOMAIN_RESOURCE << 32 | id)) return;
    Node before;
    before.id = original;
    GraphData data = {};
    data.graph = (void *) &graph;
    data.node = (void *) node;
    data.original_node = original ? &before : nullptr;
    ResourceData resource = {nullptr, nullptr, &data};
    all.callback(all.user, DOMAIN_RESOURCE, id, &resource);
}

API cuptiGetVersion(uint32_t * version) {
    *version = 130000;
    return OK;
}
API cuptiGetResultString(int result, const char ** text) {
    *text = result == MULTIPLE_SUBSCRIBERS ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : result ? "CUPTI_ERROR_UNKNOWN" : "CUPTI_SUCCESS";
    return OK;
}
API cuptiSubscribe(void ** subscriber, Callback callback, void * user) {
    if (has_fault("no-driver")) return UNKNOWN;
    if (has_fault("busy-cupti") || state().is_subscribed) return MULTIPLE_SUBSCRIBERS;
    state().is_subscribed = true;
    state().callback = callback;
    state().user = user;
    *subscriber = &state();
    listener().ran = ran;
    listener().called = called;
    listener().changed = changed;
    return OK;
}
API cuptiUnsubscribe(void *) {
    listener() = {};
    state().is_subscribed = false;
    state().callback = nullptr;
    return OK;
}
API cuptiEnableCallback(uint32_t enable, void *, int domain, uint32_t id) {
    const uint64_t key = (uint64_t) domain << 32 | id;
    if (enable) state().callbacks.insert(key);
    else state().callbacks.erase(key);
    return OK;
}
API cuptiActivityRegisterTimestampCallback(uint64_t (*timestamp)()) {
    if (!state().kinds.empty()) return INVALID_OPERATION;
    state().timestamp = timestamp;
    return OK;
}
API cuptiGetTimestamp(uint64_t * time) {
    *time = now() + offset();
    return OK;
}
API cuptiActivityRegisterCallbacks(Request request, Complete complete) {
    state().request = request;
    state().complete = complete;
    return OK;
}
API cuptiActivityEnable(int kind) {
    if (!state().request) return INVALID_OPERATION;
    const std::lock_guard<std::mutex> lock(state().mutex);
    state().kinds.insert(kind);
    return OK;
}
API cuptiActivityDisable(int kind) {
    const std::lock_guard<std::mutex> lock(state().mutex);
    state().kinds.erase(kind);
    return OK;
}

static void hand_over(const std::vector<std::string> & records) {
    State & all = state();
    for (size_t at = 0; at < records.size();) {
        uint8_t * buffer = nullptr;
        size_t size = 0, most = 0, used = 0;
        all.request(&buffer, &size, &most);
        if (!buffer) {
            all.dropped += records.size() - at;
            return;
        }
        const size_t first = at;
        for (; at < records.size() && used + records[at].size() <= size && (!most || at - first < most); at++) {
            memcpy(buffer + used, records[at].data(), records[at].size());
            used += records[at].size();
        }
        if (at == first) return; /* too small for any */
        if (has_fault("lost-buffers") && ++all.flushes == 2) {
            all.dropped += at - first;
            used = 0;
        }
        all.complete(nullptr, 0, buffer, size, used);
    }
}

API cuptiActivityFlushAll(uint32_t) {
    State & all = state();
    if (!all.complete) return INVALID_OPERATION;
    std::vector<std::string> ready;
    {
        const std::lock_guard<std::mutex> lock(all.mutex);
        std::vector<std::pair<uint64_t, std::string>> left;
        for (auto & record : all.records) {
            if (record.first <= now()) ready.push_back(std::move(record.second));
            else left.push_back(std::move(record));
        }
        all.records = std::move(left);
    }
    if (has_fault("out-of-order")) std::reverse(ready.begin(), ready.end());
    hand_over(ready);
    return OK;
}

API cuptiActivityGetNextRecord(uint8_t * buffer, size_t valid, uint8_t ** record) {
    const auto size = [](const uint8_t * at) -> size_t {
        uint32_t kind;
        memcpy(&kind, at, sizeof(kind));
        return kind == KIND_KERNEL ? sizeof(ActivityKernel) : kind == KIND_COPY ? sizeof(ActivityCopy) : kind == KIND_PEER_COPY ? sizeof(ActivityPeerCopy) : kind == KIND_FILL ? sizeof(ActivityFill)
            : kind == KIND_EXTERNAL ? sizeof(ActivityExternal) : sizeof(ActivityCall);
    };
    uint8_t * next = *record ? *record + size(*record) : buffer;
    if (next >= buffer + valid) return MAX_LIMIT_REACHED;
    *record = next;
    return OK;
}
API cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t * dropped) {
    *dropped = state().dropped;
    state().dropped = 0;
    return OK;
}
API cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
    external.emplace_back(kind, id);
    return OK;
}
API cuptiActivityPopExternalCorrelationId(int kind, uint64_t * last) {
    for (size_t i = external.size(); i-- > 0;) {
        if (external[i].first != kind) continue;
        if (last) *last = external[i].second;
        external.erase(external.begin() + (std::ptrdiff_t) i);
        return OK;
    }
    return QUEUE_EMPTY;
}
API cuptiGetGraphNodeId(const Node * node, uint64_t * id) {
    if (!node) return INVALID_PARAMETER;
    *id = node->id;
    return OK;
}
API cuptiGetGraphId(const Graph * graph, uint32_t * id) {
    *id = graph->id;
    return OK;
}
API cuptiGetGraphExecId(const Graph * graph, uint32_t * id) {
    *id = graph->id;
    return OK;
}
API cuptiGetStreamIdEx(void *, void * stream, uint8_t, uint32_t * id) {
    *id = stream_of(stream)->id;
    return OK;
}
API cuptiFinalize() { return cuptiUnsubscribe(nullptr); }
