// Generated from proto/trace_processor.proto by scripts/generate-proto.mjs; do not edit.
import * as $protobuf from "protobufjs/minimal.js";

/**
 * Properties of a TraceProcessorRpcStream.
 * @deprecated Use TraceProcessorRpcStream.$Properties instead.
 */
export interface ITraceProcessorRpcStream extends TraceProcessorRpcStream.$Properties {
}

/** Represents a TraceProcessorRpcStream. */
export class TraceProcessorRpcStream {

    /**
     * Constructs a new TraceProcessorRpcStream.
     * @param [properties] Properties to set
     */
    constructor(properties?: TraceProcessorRpcStream.$Properties);

    /** Unknown fields preserved while decoding when enabled */
    $unknowns?: Uint8Array[];

    /** TraceProcessorRpcStream msg. */
    msg: TraceProcessorRpc.$Properties[];

    /**
     * Encodes the specified TraceProcessorRpcStream message. Does not implicitly {@link TraceProcessorRpcStream.verify|verify} messages.
     * @param message TraceProcessorRpcStream message or plain object to encode
     * @param [writer] Writer to encode to
     * @returns Writer
     */
    static encode(message: TraceProcessorRpcStream.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

    /**
     * Decodes a TraceProcessorRpcStream message from the specified reader or buffer.
     * @param reader Reader or buffer to decode from
     * @param [length] Message length if known beforehand
     * @returns {TraceProcessorRpcStream & TraceProcessorRpcStream.$Shape} TraceProcessorRpcStream
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): TraceProcessorRpcStream & TraceProcessorRpcStream.$Shape;
}

export namespace TraceProcessorRpcStream {

    /** Properties of a TraceProcessorRpcStream. */
    interface $Properties {

        /** TraceProcessorRpcStream msg */
        msg?: (TraceProcessorRpc.$Properties[]|null);

        /** Unknown fields preserved while decoding when enabled */
        $unknowns?: Uint8Array[];
    }

    /** Shape of a TraceProcessorRpcStream. */
    type $Shape = TraceProcessorRpcStream.$Properties;
}

/**
 * Properties of a TraceProcessorRpc.
 * @deprecated Use TraceProcessorRpc.$Properties instead.
 */
export interface ITraceProcessorRpc extends TraceProcessorRpc.$Properties {
}

/** Represents a TraceProcessorRpc. */
export class TraceProcessorRpc {

    /**
     * Constructs a new TraceProcessorRpc.
     * @param [properties] Properties to set
     */
    constructor(properties?: TraceProcessorRpc.$Properties);

    /** Unknown fields preserved while decoding when enabled */
    $unknowns?: Uint8Array[];

    /** TraceProcessorRpc seq. */
    seq: number;

    /** TraceProcessorRpc request. */
    request: TraceProcessorRpc.TraceProcessorMethod;

    /** TraceProcessorRpc response. */
    response: TraceProcessorRpc.TraceProcessorMethod;

    /** TraceProcessorRpc invalidRequest. */
    invalidRequest: TraceProcessorRpc.TraceProcessorMethod;

    /** TraceProcessorRpc fatalError. */
    fatalError: string;

    /** TraceProcessorRpc appendTraceData. */
    appendTraceData: Uint8Array;

    /** TraceProcessorRpc queryArgs. */
    queryArgs?: (QueryArgs.$Properties|null);

    /** TraceProcessorRpc appendResult. */
    appendResult?: (AppendTraceDataResult.$Properties|null);

    /** TraceProcessorRpc queryResult. */
    queryResult?: (QueryResult.$Properties|null);

    /** TraceProcessorRpc finalizeDataResult. */
    finalizeDataResult?: (FinalizeDataResult.$Properties|null);

    /**
     * Encodes the specified TraceProcessorRpc message. Does not implicitly {@link TraceProcessorRpc.verify|verify} messages.
     * @param message TraceProcessorRpc message or plain object to encode
     * @param [writer] Writer to encode to
     * @returns Writer
     */
    static encode(message: TraceProcessorRpc.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

    /**
     * Decodes a TraceProcessorRpc message from the specified reader or buffer.
     * @param reader Reader or buffer to decode from
     * @param [length] Message length if known beforehand
     * @returns {TraceProcessorRpc & TraceProcessorRpc.$Shape} TraceProcessorRpc
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): TraceProcessorRpc & TraceProcessorRpc.$Shape;
}

export namespace TraceProcessorRpc {

    /** Properties of a TraceProcessorRpc. */
    interface $Properties {

        /** TraceProcessorRpc seq */
        seq?: (number|null);

        /** TraceProcessorRpc request */
        request?: (TraceProcessorRpc.TraceProcessorMethod|null);

        /** TraceProcessorRpc response */
        response?: (TraceProcessorRpc.TraceProcessorMethod|null);

        /** TraceProcessorRpc invalidRequest */
        invalidRequest?: (TraceProcessorRpc.TraceProcessorMethod|null);

        /** TraceProcessorRpc fatalError */
        fatalError?: (string|null);

        /** TraceProcessorRpc appendTraceData */
        appendTraceData?: (Uint8Array|null);

        /** TraceProcessorRpc queryArgs */
        queryArgs?: (QueryArgs.$Properties|null);

        /** TraceProcessorRpc appendResult */
        appendResult?: (AppendTraceDataResult.$Properties|null);

        /** TraceProcessorRpc queryResult */
        queryResult?: (QueryResult.$Properties|null);

        /** TraceProcessorRpc finalizeDataResult */
        finalizeDataResult?: (FinalizeDataResult.$Properties|null);

        /** Unknown fields preserved while decoding when enabled */
        $unknowns?: Uint8Array[];
    }

    /** Shape of a TraceProcessorRpc. */
    type $Shape = TraceProcessorRpc.$Properties;

    /** TraceProcessorMethod enum. */
    enum TraceProcessorMethod {

        /** TPM_UNSPECIFIED value */
        TPM_UNSPECIFIED = 0,

        /** TPM_APPEND_TRACE_DATA value */
        TPM_APPEND_TRACE_DATA = 1,

        /** TPM_FINALIZE_TRACE_DATA value */
        TPM_FINALIZE_TRACE_DATA = 2,

        /** TPM_QUERY_STREAMING value */
        TPM_QUERY_STREAMING = 3
    }
}

/**
 * Properties of an AppendTraceDataResult.
 * @deprecated Use AppendTraceDataResult.$Properties instead.
 */
export interface IAppendTraceDataResult extends AppendTraceDataResult.$Properties {
}

/** Represents an AppendTraceDataResult. */
export class AppendTraceDataResult {

    /**
     * Constructs a new AppendTraceDataResult.
     * @param [properties] Properties to set
     */
    constructor(properties?: AppendTraceDataResult.$Properties);

    /** Unknown fields preserved while decoding when enabled */
    $unknowns?: Uint8Array[];

    /** AppendTraceDataResult error. */
    error: string;

    /**
     * Encodes the specified AppendTraceDataResult message. Does not implicitly {@link AppendTraceDataResult.verify|verify} messages.
     * @param message AppendTraceDataResult message or plain object to encode
     * @param [writer] Writer to encode to
     * @returns Writer
     */
    static encode(message: AppendTraceDataResult.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

    /**
     * Decodes an AppendTraceDataResult message from the specified reader or buffer.
     * @param reader Reader or buffer to decode from
     * @param [length] Message length if known beforehand
     * @returns {AppendTraceDataResult & AppendTraceDataResult.$Shape} AppendTraceDataResult
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): AppendTraceDataResult & AppendTraceDataResult.$Shape;
}

export namespace AppendTraceDataResult {

    /** Properties of an AppendTraceDataResult. */
    interface $Properties {

        /** AppendTraceDataResult error */
        error?: (string|null);

        /** Unknown fields preserved while decoding when enabled */
        $unknowns?: Uint8Array[];
    }

    /** Shape of an AppendTraceDataResult. */
    type $Shape = AppendTraceDataResult.$Properties;
}

/**
 * Properties of a FinalizeDataResult.
 * @deprecated Use FinalizeDataResult.$Properties instead.
 */
export interface IFinalizeDataResult extends FinalizeDataResult.$Properties {
}

/** Represents a FinalizeDataResult. */
export class FinalizeDataResult {

    /**
     * Constructs a new FinalizeDataResult.
     * @param [properties] Properties to set
     */
    constructor(properties?: FinalizeDataResult.$Properties);

    /** Unknown fields preserved while decoding when enabled */
    $unknowns?: Uint8Array[];

    /** FinalizeDataResult error. */
    error: string;

    /**
     * Encodes the specified FinalizeDataResult message. Does not implicitly {@link FinalizeDataResult.verify|verify} messages.
     * @param message FinalizeDataResult message or plain object to encode
     * @param [writer] Writer to encode to
     * @returns Writer
     */
    static encode(message: FinalizeDataResult.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

    /**
     * Decodes a FinalizeDataResult message from the specified reader or buffer.
     * @param reader Reader or buffer to decode from
     * @param [length] Message length if known beforehand
     * @returns {FinalizeDataResult & FinalizeDataResult.$Shape} FinalizeDataResult
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): FinalizeDataResult & FinalizeDataResult.$Shape;
}

export namespace FinalizeDataResult {

    /** Properties of a FinalizeDataResult. */
    interface $Properties {

        /** FinalizeDataResult error */
        error?: (string|null);

        /** Unknown fields preserved while decoding when enabled */
        $unknowns?: Uint8Array[];
    }

    /** Shape of a FinalizeDataResult. */
    type $Shape = FinalizeDataResult.$Properties;
}

/**
 * Properties of a QueryArgs.
 * @deprecated Use QueryArgs.$Properties instead.
 */
export interface IQueryArgs extends QueryArgs.$Properties {
}

/** Represents a QueryArgs. */
export class QueryArgs {

    /**
     * Constructs a new QueryArgs.
     * @param [properties] Properties to set
     */
    constructor(properties?: QueryArgs.$Properties);

    /** Unknown fields preserved while decoding when enabled */
    $unknowns?: Uint8Array[];

    /** QueryArgs sqlQuery. */
    sqlQuery: string;

    /**
     * Encodes the specified QueryArgs message. Does not implicitly {@link QueryArgs.verify|verify} messages.
     * @param message QueryArgs message or plain object to encode
     * @param [writer] Writer to encode to
     * @returns Writer
     */
    static encode(message: QueryArgs.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

    /**
     * Decodes a QueryArgs message from the specified reader or buffer.
     * @param reader Reader or buffer to decode from
     * @param [length] Message length if known beforehand
     * @returns {QueryArgs & QueryArgs.$Shape} QueryArgs
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): QueryArgs & QueryArgs.$Shape;
}

export namespace QueryArgs {

    /** Properties of a QueryArgs. */
    interface $Properties {

        /** QueryArgs sqlQuery */
        sqlQuery?: (string|null);

        /** Unknown fields preserved while decoding when enabled */
        $unknowns?: Uint8Array[];
    }

    /** Shape of a QueryArgs. */
    type $Shape = QueryArgs.$Properties;
}

/**
 * Properties of a QueryResult.
 * @deprecated Use QueryResult.$Properties instead.
 */
export interface IQueryResult extends QueryResult.$Properties {
}

/** Represents a QueryResult. */
export class QueryResult {

    /**
     * Constructs a new QueryResult.
     * @param [properties] Properties to set
     */
    constructor(properties?: QueryResult.$Properties);

    /** Unknown fields preserved while decoding when enabled */
    $unknowns?: Uint8Array[];

    /** QueryResult columnNames. */
    columnNames: string[];

    /** QueryResult error. */
    error: string;

    /** QueryResult batch. */
    batch: CellsBatch.$Properties[];

    /**
     * Encodes the specified QueryResult message. Does not implicitly {@link QueryResult.verify|verify} messages.
     * @param message QueryResult message or plain object to encode
     * @param [writer] Writer to encode to
     * @returns Writer
     */
    static encode(message: QueryResult.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

    /**
     * Decodes a QueryResult message from the specified reader or buffer.
     * @param reader Reader or buffer to decode from
     * @param [length] Message length if known beforehand
     * @returns {QueryResult & QueryResult.$Shape} QueryResult
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): QueryResult & QueryResult.$Shape;
}

export namespace QueryResult {

    /** Properties of a QueryResult. */
    interface $Properties {

        /** QueryResult columnNames */
        columnNames?: (string[]|null);

        /** QueryResult error */
        error?: (string|null);

        /** QueryResult batch */
        batch?: (CellsBatch.$Properties[]|null);

        /** Unknown fields preserved while decoding when enabled */
        $unknowns?: Uint8Array[];
    }

    /** Shape of a QueryResult. */
    type $Shape = QueryResult.$Properties;
}

/**
 * Properties of a CellsBatch.
 * @deprecated Use CellsBatch.$Properties instead.
 */
export interface ICellsBatch extends CellsBatch.$Properties {
}

/** Represents a CellsBatch. */
export class CellsBatch {

    /**
     * Constructs a new CellsBatch.
     * @param [properties] Properties to set
     */
    constructor(properties?: CellsBatch.$Properties);

    /** Unknown fields preserved while decoding when enabled */
    $unknowns?: Uint8Array[];

    /** CellsBatch cells. */
    cells: Uint8Array;

    /** CellsBatch varintCells. */
    varintCells: Uint8Array;

    /** CellsBatch float64Cells. */
    float64Cells: Uint8Array;

    /** CellsBatch blobCells. */
    blobCells: Uint8Array[];

    /** CellsBatch stringCells. */
    stringCells: Uint8Array;

    /** CellsBatch isLastBatch. */
    isLastBatch: boolean;

    /**
     * Encodes the specified CellsBatch message. Does not implicitly {@link CellsBatch.verify|verify} messages.
     * @param message CellsBatch message or plain object to encode
     * @param [writer] Writer to encode to
     * @returns Writer
     */
    static encode(message: CellsBatch.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

    /**
     * Decodes a CellsBatch message from the specified reader or buffer.
     * @param reader Reader or buffer to decode from
     * @param [length] Message length if known beforehand
     * @returns {CellsBatch & CellsBatch.$Shape} CellsBatch
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): CellsBatch & CellsBatch.$Shape;
}

export namespace CellsBatch {

    /** Properties of a CellsBatch. */
    interface $Properties {

        /** CellsBatch cells */
        cells?: (Uint8Array|null);

        /** CellsBatch varintCells */
        varintCells?: (Uint8Array|null);

        /** CellsBatch float64Cells */
        float64Cells?: (Uint8Array|null);

        /** CellsBatch blobCells */
        blobCells?: (Uint8Array[]|null);

        /** CellsBatch stringCells */
        stringCells?: (Uint8Array|null);

        /** CellsBatch isLastBatch */
        isLastBatch?: (boolean|null);

        /** Unknown fields preserved while decoding when enabled */
        $unknowns?: Uint8Array[];
    }

    /** Shape of a CellsBatch. */
    type $Shape = CellsBatch.$Properties;

    /** CellType enum. */
    enum CellType {

        /** CELL_INVALID value */
        CELL_INVALID = 0,

        /** CELL_NULL value */
        CELL_NULL = 1,

        /** CELL_VARINT value */
        CELL_VARINT = 2,

        /** CELL_FLOAT64 value */
        CELL_FLOAT64 = 3,

        /** CELL_STRING value */
        CELL_STRING = 4,

        /** CELL_BLOB value */
        CELL_BLOB = 5
    }
}
