-- A database of version 1: before marks had a table, and compactions said what they are made of.
BEGIN TRANSACTION;
CREATE TABLE foldline_compactions (
	session_id VARCHAR(255) NOT NULL, 
	seq BIGINT NOT NULL, 
	round INTEGER NOT NULL, 
	covered_from VARCHAR(255) NOT NULL, 
	covered_to VARCHAR(255) NOT NULL, 
	covered_count BIGINT NOT NULL, 
	input_sha256 VARCHAR(64) NOT NULL, 
	tokens_before BIGINT NOT NULL, 
	tokens_after BIGINT NOT NULL, 
	event TEXT NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	PRIMARY KEY (session_id, seq), 
	CONSTRAINT foldline_compactions_round UNIQUE (session_id, round), 
	CONSTRAINT foldline_compactions_input UNIQUE (session_id, covered_from, covered_to, input_sha256)
);
INSERT INTO "foldline_compactions" VALUES('two rounds',5,1,'m1','m3',3,'1be50c87480884a93c7f1cfbb03f1325144f2c69321f6c27c9e47f48da946e6a',100,50,'{"round":1,"tokensBefore":100,"tokensAfter":50,"lengthBefore":4,"lengthAfter":2,"summary":"Summary 1","compactedIds":["m1","m2","m3"],"durationS":0.5,"trigger":"auto","reason":"","firstKeptEntryId":"m4","model":"","fallback":null,"strategy":"","promptVersion":"","details":{"readFiles":[],"modifiedFiles":[]}}','2026-01-01T00:00:00.000Z');
INSERT INTO "foldline_compactions" VALUES('two rounds',10,2,'c5.0','m7',4,'bb72571cd273ee2be4ce809a01a1cbc727f439bf839e1c6c398a586ada5ff199',100,50,'{"round":2,"tokensBefore":100,"tokensAfter":50,"lengthBefore":6,"lengthAfter":3,"summary":"Summary 2","compactedIds":["c5.0","m4","m6","m7"],"durationS":0.5,"trigger":"auto","reason":"","firstKeptEntryId":"m8","model":"","fallback":null,"strategy":"","promptVersion":"","details":{"readFiles":[],"modifiedFiles":[]}}','2026-01-01T00:00:00.000Z');
CREATE TABLE foldline_contexts (
	session_id VARCHAR(255) NOT NULL, 
	compaction_seq BIGINT NOT NULL, 
	position INTEGER NOT NULL, 
	message_id VARCHAR(255) NOT NULL, 
	message TEXT, 
	PRIMARY KEY (session_id, compaction_seq, position)
);
INSERT INTO "foldline_contexts" VALUES('two rounds',5,0,'c5.0','{"role":"user","content":"Summary 1"}');
INSERT INTO "foldline_contexts" VALUES('two rounds',5,1,'m4',NULL);
INSERT INTO "foldline_contexts" VALUES('two rounds',10,0,'c10.0','{"role":"user","content":"Summary 2"}');
INSERT INTO "foldline_contexts" VALUES('two rounds',10,1,'m8',NULL);
INSERT INTO "foldline_contexts" VALUES('two rounds',10,2,'m9',NULL);
CREATE TABLE foldline_messages (
	session_id VARCHAR(255) NOT NULL, 
	seq BIGINT NOT NULL, 
	id VARCHAR(255) NOT NULL, 
	message TEXT NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	PRIMARY KEY (session_id, seq), 
	CONSTRAINT foldline_messages_id UNIQUE (session_id, id)
);
INSERT INTO "foldline_messages" VALUES('two rounds',1,'m1','{"role":"user","content":"0"}','2026-01-01T00:00:00.000Z');
INSERT INTO "foldline_messages" VALUES('two rounds',2,'m2','{"role":"user","content":"1"}','2026-01-01T00:00:00.000Z');
INSERT INTO "foldline_messages" VALUES('two rounds',3,'m3','{"role":"user","content":"2"}','2026-01-01T00:00:00.000Z');
INSERT INTO "foldline_messages" VALUES('two rounds',4,'m4','{"role":"user","content":"3"}','2026-01-01T00:00:00.000Z');
INSERT INTO "foldline_messages" VALUES('two rounds',6,'m6','{"role":"user","content":"4"}','2026-01-01T00:00:00.000Z');
INSERT INTO "foldline_messages" VALUES('two rounds',7,'m7','{"role":"user","content":"5"}','2026-01-01T00:00:00.000Z');
INSERT INTO "foldline_messages" VALUES('two rounds',8,'m8','{"role":"user","content":"6"}','2026-01-01T00:00:00.000Z');
INSERT INTO "foldline_messages" VALUES('two rounds',9,'m9','{"role":"user","content":"7"}','2026-01-01T00:00:00.000Z');
INSERT INTO "foldline_messages" VALUES('untouched',1,'m1','{"role":"user","content":"alone"}','2026-01-01T00:00:00.000Z');
CREATE TABLE foldline_schema (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "foldline_schema" VALUES(1);
CREATE TABLE foldline_sessions (
	id VARCHAR(255) NOT NULL, 
	created_at VARCHAR(32) NOT NULL, 
	next_seq BIGINT NOT NULL, 
	round INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "foldline_sessions" VALUES('two rounds','2026-01-01T00:00:00.000Z',11,2);
INSERT INTO "foldline_sessions" VALUES('untouched','2026-01-01T00:00:00.000Z',2,0);
COMMIT;
