// Generated from proto/trace_processor.proto by scripts/generate-proto.mjs; do not edit.
/*eslint-disable block-scoped-var, id-length, no-control-regex, no-magic-numbers, no-mixed-operators, no-prototype-builtins, no-redeclare, no-shadow, no-var, sort-vars, default-case, jsdoc/require-param*/
import $protobuf from "protobufjs/minimal.js";

// Common aliases
const $Reader = $protobuf.Reader, $Writer = $protobuf.Writer, $util = $protobuf.util;
const $Object = $util.global.Object, $undefined = $util.global.undefined, $Error = $util.global.Error, $RangeError = $util.global.RangeError;

// Exported root namespace
const $root = $protobuf.roots["ggml2perfetto"] || ($protobuf.roots["ggml2perfetto"] = {});

export const TraceProcessorRpcStream = $root.TraceProcessorRpcStream = (() => {

    /**
     * Properties of a TraceProcessorRpcStream.
     * @typedef {Object} TraceProcessorRpcStream.$Properties
     * @property {Array.<TraceProcessorRpc.$Properties>|null} [msg] TraceProcessorRpcStream msg
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */

    /**
     * Properties of a TraceProcessorRpcStream.
     * @exports ITraceProcessorRpcStream
     * @interface ITraceProcessorRpcStream
     * @augments TraceProcessorRpcStream.$Properties
     * @deprecated Use TraceProcessorRpcStream.$Properties instead.
     */

    /**
     * Shape of a TraceProcessorRpcStream.
     * @typedef {TraceProcessorRpcStream.$Properties} TraceProcessorRpcStream.$Shape
     */

    /**
     * Constructs a new TraceProcessorRpcStream.
     * @exports TraceProcessorRpcStream
     * @classdesc Represents a TraceProcessorRpcStream.
     * @constructor
     * @param {TraceProcessorRpcStream.$Properties=} [properties] Properties to set
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */
    const TraceProcessorRpcStream = function (properties) {
        this.msg = [];
        if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                if (properties[keys[i]] != null && keys[i] !== "__proto__")
                    this[keys[i]] = properties[keys[i]];
    };

    /**
     * TraceProcessorRpcStream msg.
     * @member {Array.<TraceProcessorRpc.$Properties>} msg
     * @memberof TraceProcessorRpcStream
     * @instance
     */
    TraceProcessorRpcStream.prototype.msg = $util.emptyArray;

    /**
     * Encodes the specified TraceProcessorRpcStream message. Does not implicitly {@link TraceProcessorRpcStream.verify|verify} messages.
     * @function encode
     * @memberof TraceProcessorRpcStream
     * @static
     * @param {TraceProcessorRpcStream.$Properties} message TraceProcessorRpcStream message or plain object to encode
     * @param {$protobuf.Writer} [writer] Writer to encode to
     * @returns {$protobuf.Writer} Writer
     */
    TraceProcessorRpcStream.encode = function (message, writer, _depth) {
        if (!writer)
            writer = $Writer.create();
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
        if (message.msg != null && message.msg.length)
            for (let i = 0; i < message.msg.length; ++i)
                $root.TraceProcessorRpc.encode(message.msg[i], writer.uint32(/* id 1, wireType 2 =*/10).fork(), _depth + 1).ldelim();
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
                writer.raw(message.$unknowns[i]);
        return writer;
    };

    /**
     * Decodes a TraceProcessorRpcStream message from the specified reader or buffer.
     * @function decode
     * @memberof TraceProcessorRpcStream
     * @static
     * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
     * @param {number} [length] Message length if known beforehand
     * @returns {TraceProcessorRpcStream & TraceProcessorRpcStream.$Shape} TraceProcessorRpcStream
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    TraceProcessorRpcStream.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
            end = reader.len;
        else {
            end = reader.pos + length;
            if (end > reader.len)
                throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
        }
        message = _target || new $root.TraceProcessorRpcStream();
        while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
                _end = $undefined;
                break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                    if (wireType !== 2)
                        break;
                    if (!(message.msg && message.msg.length))
                        message.msg = [];
                    message.msg.push($root.TraceProcessorRpc.decode(reader, reader.size(), $undefined, _depth + 1));
                    continue;
                }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
                $util.makeProp(message, "$unknowns", false);
                (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
        }
        if (length !== $undefined) {
            if (reader.pos !== end)
                throw $RangeError("index out of range");
            reader.len = length;
        }
        if (_end !== $undefined)
            throw $Error("missing end group");
        return message;
    };

    return TraceProcessorRpcStream;
})();

export const TraceProcessorRpc = $root.TraceProcessorRpc = (() => {

    /**
     * Properties of a TraceProcessorRpc.
     * @typedef {Object} TraceProcessorRpc.$Properties
     * @property {number|null} [seq] TraceProcessorRpc seq
     * @property {TraceProcessorRpc.TraceProcessorMethod|null} [request] TraceProcessorRpc request
     * @property {TraceProcessorRpc.TraceProcessorMethod|null} [response] TraceProcessorRpc response
     * @property {TraceProcessorRpc.TraceProcessorMethod|null} [invalidRequest] TraceProcessorRpc invalidRequest
     * @property {string|null} [fatalError] TraceProcessorRpc fatalError
     * @property {Uint8Array|null} [appendTraceData] TraceProcessorRpc appendTraceData
     * @property {QueryArgs.$Properties|null} [queryArgs] TraceProcessorRpc queryArgs
     * @property {AppendTraceDataResult.$Properties|null} [appendResult] TraceProcessorRpc appendResult
     * @property {QueryResult.$Properties|null} [queryResult] TraceProcessorRpc queryResult
     * @property {FinalizeDataResult.$Properties|null} [finalizeDataResult] TraceProcessorRpc finalizeDataResult
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */

    /**
     * Properties of a TraceProcessorRpc.
     * @exports ITraceProcessorRpc
     * @interface ITraceProcessorRpc
     * @augments TraceProcessorRpc.$Properties
     * @deprecated Use TraceProcessorRpc.$Properties instead.
     */

    /**
     * Shape of a TraceProcessorRpc.
     * @typedef {TraceProcessorRpc.$Properties} TraceProcessorRpc.$Shape
     */

    /**
     * Constructs a new TraceProcessorRpc.
     * @exports TraceProcessorRpc
     * @classdesc Represents a TraceProcessorRpc.
     * @constructor
     * @param {TraceProcessorRpc.$Properties=} [properties] Properties to set
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */
    const TraceProcessorRpc = function (properties) {
        if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                if (properties[keys[i]] != null && keys[i] !== "__proto__")
                    this[keys[i]] = properties[keys[i]];
    };

    /**
     * TraceProcessorRpc seq.
     * @member {number} seq
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.seq = 0;

    /**
     * TraceProcessorRpc request.
     * @member {TraceProcessorRpc.TraceProcessorMethod} request
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.request = 0;

    /**
     * TraceProcessorRpc response.
     * @member {TraceProcessorRpc.TraceProcessorMethod} response
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.response = 0;

    /**
     * TraceProcessorRpc invalidRequest.
     * @member {TraceProcessorRpc.TraceProcessorMethod} invalidRequest
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.invalidRequest = 0;

    /**
     * TraceProcessorRpc fatalError.
     * @member {string} fatalError
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.fatalError = "";

    /**
     * TraceProcessorRpc appendTraceData.
     * @member {Uint8Array} appendTraceData
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.appendTraceData = $util.newBuffer([]);

    /**
     * TraceProcessorRpc queryArgs.
     * @member {QueryArgs.$Properties|null|undefined} queryArgs
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.queryArgs = null;

    /**
     * TraceProcessorRpc appendResult.
     * @member {AppendTraceDataResult.$Properties|null|undefined} appendResult
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.appendResult = null;

    /**
     * TraceProcessorRpc queryResult.
     * @member {QueryResult.$Properties|null|undefined} queryResult
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.queryResult = null;

    /**
     * TraceProcessorRpc finalizeDataResult.
     * @member {FinalizeDataResult.$Properties|null|undefined} finalizeDataResult
     * @memberof TraceProcessorRpc
     * @instance
     */
    TraceProcessorRpc.prototype.finalizeDataResult = null;

    /**
     * Encodes the specified TraceProcessorRpc message. Does not implicitly {@link TraceProcessorRpc.verify|verify} messages.
     * @function encode
     * @memberof TraceProcessorRpc
     * @static
     * @param {TraceProcessorRpc.$Properties} message TraceProcessorRpc message or plain object to encode
     * @param {$protobuf.Writer} [writer] Writer to encode to
     * @returns {$protobuf.Writer} Writer
     */
    TraceProcessorRpc.encode = function (message, writer, _depth) {
        if (!writer)
            writer = $Writer.create();
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
        if (message.seq != null && $Object.hasOwnProperty.call(message, "seq"))
            writer.uint32(/* id 1, wireType 0 =*/8).uint32(message.seq);
        if (message.request != null && $Object.hasOwnProperty.call(message, "request"))
            writer.uint32(/* id 2, wireType 0 =*/16).int32(message.request);
        if (message.response != null && $Object.hasOwnProperty.call(message, "response"))
            writer.uint32(/* id 3, wireType 0 =*/24).int32(message.response);
        if (message.invalidRequest != null && $Object.hasOwnProperty.call(message, "invalidRequest"))
            writer.uint32(/* id 4, wireType 0 =*/32).int32(message.invalidRequest);
        if (message.fatalError != null && $Object.hasOwnProperty.call(message, "fatalError"))
            writer.uint32(/* id 5, wireType 2 =*/42).string(message.fatalError);
        if (message.appendTraceData != null && $Object.hasOwnProperty.call(message, "appendTraceData"))
            writer.uint32(/* id 101, wireType 2 =*/810).bytes(message.appendTraceData);
        if (message.queryArgs != null && $Object.hasOwnProperty.call(message, "queryArgs"))
            $root.QueryArgs.encode(message.queryArgs, writer.uint32(/* id 103, wireType 2 =*/826).fork(), _depth + 1).ldelim();
        if (message.appendResult != null && $Object.hasOwnProperty.call(message, "appendResult"))
            $root.AppendTraceDataResult.encode(message.appendResult, writer.uint32(/* id 201, wireType 2 =*/1610).fork(), _depth + 1).ldelim();
        if (message.queryResult != null && $Object.hasOwnProperty.call(message, "queryResult"))
            $root.QueryResult.encode(message.queryResult, writer.uint32(/* id 203, wireType 2 =*/1626).fork(), _depth + 1).ldelim();
        if (message.finalizeDataResult != null && $Object.hasOwnProperty.call(message, "finalizeDataResult"))
            $root.FinalizeDataResult.encode(message.finalizeDataResult, writer.uint32(/* id 212, wireType 2 =*/1698).fork(), _depth + 1).ldelim();
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
                writer.raw(message.$unknowns[i]);
        return writer;
    };

    /**
     * Decodes a TraceProcessorRpc message from the specified reader or buffer.
     * @function decode
     * @memberof TraceProcessorRpc
     * @static
     * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
     * @param {number} [length] Message length if known beforehand
     * @returns {TraceProcessorRpc & TraceProcessorRpc.$Shape} TraceProcessorRpc
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    TraceProcessorRpc.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
        let end, message, value;
        if (length === $undefined)
            end = reader.len;
        else {
            end = reader.pos + length;
            if (end > reader.len)
                throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
        }
        message = _target || new $root.TraceProcessorRpc();
        while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
                _end = $undefined;
                break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                    if (wireType !== 0)
                        break;
                    message.seq = reader.uint32();
                    continue;
                }
            case 2: {
                    if (wireType !== 0)
                        break;
                    value = reader.int32();
                    if ($root.TraceProcessorRpc.TraceProcessorMethod[value] !== $undefined)
                        message.request = value;
                    else if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                    continue;
                }
            case 3: {
                    if (wireType !== 0)
                        break;
                    value = reader.int32();
                    if ($root.TraceProcessorRpc.TraceProcessorMethod[value] !== $undefined)
                        message.response = value;
                    else if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                    continue;
                }
            case 4: {
                    if (wireType !== 0)
                        break;
                    value = reader.int32();
                    if ($root.TraceProcessorRpc.TraceProcessorMethod[value] !== $undefined)
                        message.invalidRequest = value;
                    else if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                    continue;
                }
            case 5: {
                    if (wireType !== 2)
                        break;
                    message.fatalError = reader.string();
                    continue;
                }
            case 101: {
                    if (wireType !== 2)
                        break;
                    message.appendTraceData = reader.bytes();
                    continue;
                }
            case 103: {
                    if (wireType !== 2)
                        break;
                    message.queryArgs = $root.QueryArgs.decode(reader, reader.size(), $undefined, _depth + 1, message.queryArgs);
                    continue;
                }
            case 201: {
                    if (wireType !== 2)
                        break;
                    message.appendResult = $root.AppendTraceDataResult.decode(reader, reader.size(), $undefined, _depth + 1, message.appendResult);
                    continue;
                }
            case 203: {
                    if (wireType !== 2)
                        break;
                    message.queryResult = $root.QueryResult.decode(reader, reader.size(), $undefined, _depth + 1, message.queryResult);
                    continue;
                }
            case 212: {
                    if (wireType !== 2)
                        break;
                    message.finalizeDataResult = $root.FinalizeDataResult.decode(reader, reader.size(), $undefined, _depth + 1, message.finalizeDataResult);
                    continue;
                }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
                $util.makeProp(message, "$unknowns", false);
                (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
        }
        if (length !== $undefined) {
            if (reader.pos !== end)
                throw $RangeError("index out of range");
            reader.len = length;
        }
        if (_end !== $undefined)
            throw $Error("missing end group");
        return message;
    };

    /**
     * TraceProcessorMethod enum.
     * @name TraceProcessorRpc.TraceProcessorMethod
     * @enum {number}
     * @property {number} TPM_UNSPECIFIED=0 TPM_UNSPECIFIED value
     * @property {number} TPM_APPEND_TRACE_DATA=1 TPM_APPEND_TRACE_DATA value
     * @property {number} TPM_FINALIZE_TRACE_DATA=2 TPM_FINALIZE_TRACE_DATA value
     * @property {number} TPM_QUERY_STREAMING=3 TPM_QUERY_STREAMING value
     */
    TraceProcessorRpc.TraceProcessorMethod = (function() {
        const valuesById = $Object.create(null), values = $Object.create(valuesById);
        values[valuesById[0] = "TPM_UNSPECIFIED"] = 0;
        values[valuesById[1] = "TPM_APPEND_TRACE_DATA"] = 1;
        values[valuesById[2] = "TPM_FINALIZE_TRACE_DATA"] = 2;
        values[valuesById[3] = "TPM_QUERY_STREAMING"] = 3;
        return values;
    })();

    return TraceProcessorRpc;
})();

export const AppendTraceDataResult = $root.AppendTraceDataResult = (() => {

    /**
     * Properties of an AppendTraceDataResult.
     * @typedef {Object} AppendTraceDataResult.$Properties
     * @property {string|null} [error] AppendTraceDataResult error
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */

    /**
     * Properties of an AppendTraceDataResult.
     * @exports IAppendTraceDataResult
     * @interface IAppendTraceDataResult
     * @augments AppendTraceDataResult.$Properties
     * @deprecated Use AppendTraceDataResult.$Properties instead.
     */

    /**
     * Shape of an AppendTraceDataResult.
     * @typedef {AppendTraceDataResult.$Properties} AppendTraceDataResult.$Shape
     */

    /**
     * Constructs a new AppendTraceDataResult.
     * @exports AppendTraceDataResult
     * @classdesc Represents an AppendTraceDataResult.
     * @constructor
     * @param {AppendTraceDataResult.$Properties=} [properties] Properties to set
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */
    const AppendTraceDataResult = function (properties) {
        if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                if (properties[keys[i]] != null && keys[i] !== "__proto__")
                    this[keys[i]] = properties[keys[i]];
    };

    /**
     * AppendTraceDataResult error.
     * @member {string} error
     * @memberof AppendTraceDataResult
     * @instance
     */
    AppendTraceDataResult.prototype.error = "";

    /**
     * Encodes the specified AppendTraceDataResult message. Does not implicitly {@link AppendTraceDataResult.verify|verify} messages.
     * @function encode
     * @memberof AppendTraceDataResult
     * @static
     * @param {AppendTraceDataResult.$Properties} message AppendTraceDataResult message or plain object to encode
     * @param {$protobuf.Writer} [writer] Writer to encode to
     * @returns {$protobuf.Writer} Writer
     */
    AppendTraceDataResult.encode = function (message, writer, _depth) {
        if (!writer)
            writer = $Writer.create();
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
        if (message.error != null && $Object.hasOwnProperty.call(message, "error"))
            writer.uint32(/* id 2, wireType 2 =*/18).string(message.error);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
                writer.raw(message.$unknowns[i]);
        return writer;
    };

    /**
     * Decodes an AppendTraceDataResult message from the specified reader or buffer.
     * @function decode
     * @memberof AppendTraceDataResult
     * @static
     * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
     * @param {number} [length] Message length if known beforehand
     * @returns {AppendTraceDataResult & AppendTraceDataResult.$Shape} AppendTraceDataResult
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    AppendTraceDataResult.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
            end = reader.len;
        else {
            end = reader.pos + length;
            if (end > reader.len)
                throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
        }
        message = _target || new $root.AppendTraceDataResult();
        while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
                _end = $undefined;
                break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 2: {
                    if (wireType !== 2)
                        break;
                    message.error = reader.string();
                    continue;
                }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
                $util.makeProp(message, "$unknowns", false);
                (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
        }
        if (length !== $undefined) {
            if (reader.pos !== end)
                throw $RangeError("index out of range");
            reader.len = length;
        }
        if (_end !== $undefined)
            throw $Error("missing end group");
        return message;
    };

    return AppendTraceDataResult;
})();

export const FinalizeDataResult = $root.FinalizeDataResult = (() => {

    /**
     * Properties of a FinalizeDataResult.
     * @typedef {Object} FinalizeDataResult.$Properties
     * @property {string|null} [error] FinalizeDataResult error
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */

    /**
     * Properties of a FinalizeDataResult.
     * @exports IFinalizeDataResult
     * @interface IFinalizeDataResult
     * @augments FinalizeDataResult.$Properties
     * @deprecated Use FinalizeDataResult.$Properties instead.
     */

    /**
     * Shape of a FinalizeDataResult.
     * @typedef {FinalizeDataResult.$Properties} FinalizeDataResult.$Shape
     */

    /**
     * Constructs a new FinalizeDataResult.
     * @exports FinalizeDataResult
     * @classdesc Represents a FinalizeDataResult.
     * @constructor
     * @param {FinalizeDataResult.$Properties=} [properties] Properties to set
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */
    const FinalizeDataResult = function (properties) {
        if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                if (properties[keys[i]] != null && keys[i] !== "__proto__")
                    this[keys[i]] = properties[keys[i]];
    };

    /**
     * FinalizeDataResult error.
     * @member {string} error
     * @memberof FinalizeDataResult
     * @instance
     */
    FinalizeDataResult.prototype.error = "";

    /**
     * Encodes the specified FinalizeDataResult message. Does not implicitly {@link FinalizeDataResult.verify|verify} messages.
     * @function encode
     * @memberof FinalizeDataResult
     * @static
     * @param {FinalizeDataResult.$Properties} message FinalizeDataResult message or plain object to encode
     * @param {$protobuf.Writer} [writer] Writer to encode to
     * @returns {$protobuf.Writer} Writer
     */
    FinalizeDataResult.encode = function (message, writer, _depth) {
        if (!writer)
            writer = $Writer.create();
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
        if (message.error != null && $Object.hasOwnProperty.call(message, "error"))
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.error);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
                writer.raw(message.$unknowns[i]);
        return writer;
    };

    /**
     * Decodes a FinalizeDataResult message from the specified reader or buffer.
     * @function decode
     * @memberof FinalizeDataResult
     * @static
     * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
     * @param {number} [length] Message length if known beforehand
     * @returns {FinalizeDataResult & FinalizeDataResult.$Shape} FinalizeDataResult
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    FinalizeDataResult.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
            end = reader.len;
        else {
            end = reader.pos + length;
            if (end > reader.len)
                throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
        }
        message = _target || new $root.FinalizeDataResult();
        while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
                _end = $undefined;
                break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                    if (wireType !== 2)
                        break;
                    message.error = reader.string();
                    continue;
                }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
                $util.makeProp(message, "$unknowns", false);
                (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
        }
        if (length !== $undefined) {
            if (reader.pos !== end)
                throw $RangeError("index out of range");
            reader.len = length;
        }
        if (_end !== $undefined)
            throw $Error("missing end group");
        return message;
    };

    return FinalizeDataResult;
})();

export const QueryArgs = $root.QueryArgs = (() => {

    /**
     * Properties of a QueryArgs.
     * @typedef {Object} QueryArgs.$Properties
     * @property {string|null} [sqlQuery] QueryArgs sqlQuery
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */

    /**
     * Properties of a QueryArgs.
     * @exports IQueryArgs
     * @interface IQueryArgs
     * @augments QueryArgs.$Properties
     * @deprecated Use QueryArgs.$Properties instead.
     */

    /**
     * Shape of a QueryArgs.
     * @typedef {QueryArgs.$Properties} QueryArgs.$Shape
     */

    /**
     * Constructs a new QueryArgs.
     * @exports QueryArgs
     * @classdesc Represents a QueryArgs.
     * @constructor
     * @param {QueryArgs.$Properties=} [properties] Properties to set
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */
    const QueryArgs = function (properties) {
        if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                if (properties[keys[i]] != null && keys[i] !== "__proto__")
                    this[keys[i]] = properties[keys[i]];
    };

    /**
     * QueryArgs sqlQuery.
     * @member {string} sqlQuery
     * @memberof QueryArgs
     * @instance
     */
    QueryArgs.prototype.sqlQuery = "";

    /**
     * Encodes the specified QueryArgs message. Does not implicitly {@link QueryArgs.verify|verify} messages.
     * @function encode
     * @memberof QueryArgs
     * @static
     * @param {QueryArgs.$Properties} message QueryArgs message or plain object to encode
     * @param {$protobuf.Writer} [writer] Writer to encode to
     * @returns {$protobuf.Writer} Writer
     */
    QueryArgs.encode = function (message, writer, _depth) {
        if (!writer)
            writer = $Writer.create();
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
        if (message.sqlQuery != null && $Object.hasOwnProperty.call(message, "sqlQuery"))
            writer.uint32(/* id 1, wireType 2 =*/10).string(message.sqlQuery);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
                writer.raw(message.$unknowns[i]);
        return writer;
    };

    /**
     * Decodes a QueryArgs message from the specified reader or buffer.
     * @function decode
     * @memberof QueryArgs
     * @static
     * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
     * @param {number} [length] Message length if known beforehand
     * @returns {QueryArgs & QueryArgs.$Shape} QueryArgs
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    QueryArgs.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
            end = reader.len;
        else {
            end = reader.pos + length;
            if (end > reader.len)
                throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
        }
        message = _target || new $root.QueryArgs();
        while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
                _end = $undefined;
                break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                    if (wireType !== 2)
                        break;
                    message.sqlQuery = reader.string();
                    continue;
                }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
                $util.makeProp(message, "$unknowns", false);
                (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
        }
        if (length !== $undefined) {
            if (reader.pos !== end)
                throw $RangeError("index out of range");
            reader.len = length;
        }
        if (_end !== $undefined)
            throw $Error("missing end group");
        return message;
    };

    return QueryArgs;
})();

export const QueryResult = $root.QueryResult = (() => {

    /**
     * Properties of a QueryResult.
     * @typedef {Object} QueryResult.$Properties
     * @property {Array.<string>|null} [columnNames] QueryResult columnNames
     * @property {string|null} [error] QueryResult error
     * @property {Array.<CellsBatch.$Properties>|null} [batch] QueryResult batch
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */

    /**
     * Properties of a QueryResult.
     * @exports IQueryResult
     * @interface IQueryResult
     * @augments QueryResult.$Properties
     * @deprecated Use QueryResult.$Properties instead.
     */

    /**
     * Shape of a QueryResult.
     * @typedef {QueryResult.$Properties} QueryResult.$Shape
     */

    /**
     * Constructs a new QueryResult.
     * @exports QueryResult
     * @classdesc Represents a QueryResult.
     * @constructor
     * @param {QueryResult.$Properties=} [properties] Properties to set
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */
    const QueryResult = function (properties) {
        this.columnNames = [];
        this.batch = [];
        if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                if (properties[keys[i]] != null && keys[i] !== "__proto__")
                    this[keys[i]] = properties[keys[i]];
    };

    /**
     * QueryResult columnNames.
     * @member {Array.<string>} columnNames
     * @memberof QueryResult
     * @instance
     */
    QueryResult.prototype.columnNames = $util.emptyArray;

    /**
     * QueryResult error.
     * @member {string} error
     * @memberof QueryResult
     * @instance
     */
    QueryResult.prototype.error = "";

    /**
     * QueryResult batch.
     * @member {Array.<CellsBatch.$Properties>} batch
     * @memberof QueryResult
     * @instance
     */
    QueryResult.prototype.batch = $util.emptyArray;

    /**
     * Encodes the specified QueryResult message. Does not implicitly {@link QueryResult.verify|verify} messages.
     * @function encode
     * @memberof QueryResult
     * @static
     * @param {QueryResult.$Properties} message QueryResult message or plain object to encode
     * @param {$protobuf.Writer} [writer] Writer to encode to
     * @returns {$protobuf.Writer} Writer
     */
    QueryResult.encode = function (message, writer, _depth) {
        if (!writer)
            writer = $Writer.create();
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
        if (message.columnNames != null && message.columnNames.length)
            for (let i = 0; i < message.columnNames.length; ++i)
                writer.uint32(/* id 1, wireType 2 =*/10).string(message.columnNames[i]);
        if (message.error != null && $Object.hasOwnProperty.call(message, "error"))
            writer.uint32(/* id 2, wireType 2 =*/18).string(message.error);
        if (message.batch != null && message.batch.length)
            for (let i = 0; i < message.batch.length; ++i)
                $root.CellsBatch.encode(message.batch[i], writer.uint32(/* id 3, wireType 2 =*/26).fork(), _depth + 1).ldelim();
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
                writer.raw(message.$unknowns[i]);
        return writer;
    };

    /**
     * Decodes a QueryResult message from the specified reader or buffer.
     * @function decode
     * @memberof QueryResult
     * @static
     * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
     * @param {number} [length] Message length if known beforehand
     * @returns {QueryResult & QueryResult.$Shape} QueryResult
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    QueryResult.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
            end = reader.len;
        else {
            end = reader.pos + length;
            if (end > reader.len)
                throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
        }
        message = _target || new $root.QueryResult();
        while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
                _end = $undefined;
                break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                    if (wireType !== 2)
                        break;
                    if (!(message.columnNames && message.columnNames.length))
                        message.columnNames = [];
                    message.columnNames.push(reader.string());
                    continue;
                }
            case 2: {
                    if (wireType !== 2)
                        break;
                    message.error = reader.string();
                    continue;
                }
            case 3: {
                    if (wireType !== 2)
                        break;
                    if (!(message.batch && message.batch.length))
                        message.batch = [];
                    message.batch.push($root.CellsBatch.decode(reader, reader.size(), $undefined, _depth + 1));
                    continue;
                }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
                $util.makeProp(message, "$unknowns", false);
                (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
        }
        if (length !== $undefined) {
            if (reader.pos !== end)
                throw $RangeError("index out of range");
            reader.len = length;
        }
        if (_end !== $undefined)
            throw $Error("missing end group");
        return message;
    };

    return QueryResult;
})();

export const CellsBatch = $root.CellsBatch = (() => {

    /**
     * Properties of a CellsBatch.
     * @typedef {Object} CellsBatch.$Properties
     * @property {Uint8Array|null} [cells] CellsBatch cells
     * @property {Uint8Array|null} [varintCells] CellsBatch varintCells
     * @property {Uint8Array|null} [float64Cells] CellsBatch float64Cells
     * @property {Array.<Uint8Array>|null} [blobCells] CellsBatch blobCells
     * @property {Uint8Array|null} [stringCells] CellsBatch stringCells
     * @property {boolean|null} [isLastBatch] CellsBatch isLastBatch
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */

    /**
     * Properties of a CellsBatch.
     * @exports ICellsBatch
     * @interface ICellsBatch
     * @augments CellsBatch.$Properties
     * @deprecated Use CellsBatch.$Properties instead.
     */

    /**
     * Shape of a CellsBatch.
     * @typedef {CellsBatch.$Properties} CellsBatch.$Shape
     */

    /**
     * Constructs a new CellsBatch.
     * @exports CellsBatch
     * @classdesc Represents a CellsBatch.
     * @constructor
     * @param {CellsBatch.$Properties=} [properties] Properties to set
     * @property {Array.<Uint8Array>} [$unknowns] Unknown fields preserved while decoding when enabled
     */
    const CellsBatch = function (properties) {
        this.blobCells = [];
        if (properties)
            for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                if (properties[keys[i]] != null && keys[i] !== "__proto__")
                    this[keys[i]] = properties[keys[i]];
    };

    /**
     * CellsBatch cells.
     * @member {Uint8Array} cells
     * @memberof CellsBatch
     * @instance
     */
    CellsBatch.prototype.cells = $util.newBuffer([]);

    /**
     * CellsBatch varintCells.
     * @member {Uint8Array} varintCells
     * @memberof CellsBatch
     * @instance
     */
    CellsBatch.prototype.varintCells = $util.newBuffer([]);

    /**
     * CellsBatch float64Cells.
     * @member {Uint8Array} float64Cells
     * @memberof CellsBatch
     * @instance
     */
    CellsBatch.prototype.float64Cells = $util.newBuffer([]);

    /**
     * CellsBatch blobCells.
     * @member {Array.<Uint8Array>} blobCells
     * @memberof CellsBatch
     * @instance
     */
    CellsBatch.prototype.blobCells = $util.emptyArray;

    /**
     * CellsBatch stringCells.
     * @member {Uint8Array} stringCells
     * @memberof CellsBatch
     * @instance
     */
    CellsBatch.prototype.stringCells = $util.newBuffer([]);

    /**
     * CellsBatch isLastBatch.
     * @member {boolean} isLastBatch
     * @memberof CellsBatch
     * @instance
     */
    CellsBatch.prototype.isLastBatch = false;

    /**
     * Encodes the specified CellsBatch message. Does not implicitly {@link CellsBatch.verify|verify} messages.
     * @function encode
     * @memberof CellsBatch
     * @static
     * @param {CellsBatch.$Properties} message CellsBatch message or plain object to encode
     * @param {$protobuf.Writer} [writer] Writer to encode to
     * @returns {$protobuf.Writer} Writer
     */
    CellsBatch.encode = function (message, writer, _depth) {
        if (!writer)
            writer = $Writer.create();
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $util.recursionLimit)
            throw $Error("max depth exceeded");
        if (message.cells != null && $Object.hasOwnProperty.call(message, "cells"))
            writer.uint32(/* id 1, wireType 2 =*/10).bytes(message.cells);
        if (message.varintCells != null && $Object.hasOwnProperty.call(message, "varintCells"))
            writer.uint32(/* id 2, wireType 2 =*/18).bytes(message.varintCells);
        if (message.float64Cells != null && $Object.hasOwnProperty.call(message, "float64Cells"))
            writer.uint32(/* id 3, wireType 2 =*/26).bytes(message.float64Cells);
        if (message.blobCells != null && message.blobCells.length)
            for (let i = 0; i < message.blobCells.length; ++i)
                writer.uint32(/* id 4, wireType 2 =*/34).bytes(message.blobCells[i]);
        if (message.stringCells != null && $Object.hasOwnProperty.call(message, "stringCells"))
            writer.uint32(/* id 5, wireType 2 =*/42).bytes(message.stringCells);
        if (message.isLastBatch != null && $Object.hasOwnProperty.call(message, "isLastBatch"))
            writer.uint32(/* id 6, wireType 0 =*/48).bool(message.isLastBatch);
        if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
            for (let i = 0; i < message.$unknowns.length; ++i)
                writer.raw(message.$unknowns[i]);
        return writer;
    };

    /**
     * Decodes a CellsBatch message from the specified reader or buffer.
     * @function decode
     * @memberof CellsBatch
     * @static
     * @param {$protobuf.Reader|Uint8Array} reader Reader or buffer to decode from
     * @param {number} [length] Message length if known beforehand
     * @returns {CellsBatch & CellsBatch.$Shape} CellsBatch
     * @throws {Error} If the payload is not a reader or valid buffer
     * @throws {$protobuf.util.ProtocolError} If required fields are missing
     */
    CellsBatch.decode = function (reader, length, _end, _depth, _target) {
        if (!(reader instanceof $Reader))
            reader = $Reader.create(reader);
        if (_depth === $undefined)
            _depth = 0;
        if (_depth > $Reader.recursionLimit)
            throw $Error("max depth exceeded");
        let end, message;
        if (length === $undefined)
            end = reader.len;
        else {
            end = reader.pos + length;
            if (end > reader.len)
                throw $RangeError("index out of range");
            length = reader.len;
            reader.len = end;
        }
        message = _target || new $root.CellsBatch();
        while (reader.pos < end) {
            let start = reader.pos;
            let tag = reader.tag();
            if (tag === _end) {
                _end = $undefined;
                break;
            }
            let wireType = tag & 7;
            switch (tag >>>= 3) {
            case 1: {
                    if (wireType !== 2)
                        break;
                    message.cells = reader.bytes();
                    continue;
                }
            case 2: {
                    if (wireType !== 2)
                        break;
                    message.varintCells = reader.bytes();
                    continue;
                }
            case 3: {
                    if (wireType !== 2)
                        break;
                    message.float64Cells = reader.bytes();
                    continue;
                }
            case 4: {
                    if (wireType !== 2)
                        break;
                    if (!(message.blobCells && message.blobCells.length))
                        message.blobCells = [];
                    message.blobCells.push(reader.bytes());
                    continue;
                }
            case 5: {
                    if (wireType !== 2)
                        break;
                    message.stringCells = reader.bytes();
                    continue;
                }
            case 6: {
                    if (wireType !== 0)
                        break;
                    message.isLastBatch = reader.bool();
                    continue;
                }
            }
            reader.skipType(wireType, _depth, tag);
            if (!reader.discardUnknown) {
                $util.makeProp(message, "$unknowns", false);
                (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
            }
        }
        if (length !== $undefined) {
            if (reader.pos !== end)
                throw $RangeError("index out of range");
            reader.len = length;
        }
        if (_end !== $undefined)
            throw $Error("missing end group");
        return message;
    };

    /**
     * CellType enum.
     * @name CellsBatch.CellType
     * @enum {number}
     * @property {number} CELL_INVALID=0 CELL_INVALID value
     * @property {number} CELL_NULL=1 CELL_NULL value
     * @property {number} CELL_VARINT=2 CELL_VARINT value
     * @property {number} CELL_FLOAT64=3 CELL_FLOAT64 value
     * @property {number} CELL_STRING=4 CELL_STRING value
     * @property {number} CELL_BLOB=5 CELL_BLOB value
     */
    CellsBatch.CellType = (function() {
        const valuesById = $Object.create(null), values = $Object.create(valuesById);
        values[valuesById[0] = "CELL_INVALID"] = 0;
        values[valuesById[1] = "CELL_NULL"] = 1;
        values[valuesById[2] = "CELL_VARINT"] = 2;
        values[valuesById[3] = "CELL_FLOAT64"] = 3;
        values[valuesById[4] = "CELL_STRING"] = 4;
        values[valuesById[5] = "CELL_BLOB"] = 5;
        return values;
    })();

    return CellsBatch;
})();

export {
  $root as default
};
