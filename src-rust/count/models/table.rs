//! The built-in models. Checked 2026-11-22.
//!
//! Encodings: the table of tiktoken 0.14. Context windows: genai-prices 0.2.3 (MIT), a dated snapshot of published
//! values. Longest outputs: models.dev (MIT). Pictures: OpenAI's guide to images; for gpt-5-mini and gpt-5.2
//! measurements of users, since the guide differs. Claude's tokenizer: Anthropic's guide to token counting names the
//! models with the newer one.

use std::borrow::Cow;

use super::Model;
use crate::count::framing::Family;
use crate::count::framing::media::PictureRule;

const CHECKED: &str = "2026-11-22";

const OPENAI: &str = "openai";
const ANTHROPIC: &str = "anthropic";
const GOOGLE: &str = "google";

const O200K: &str = "o200k_base";
const HARMONY: &str = "o200k_harmony";
const CL100K: &str = "cl100k_base";
const P50K: &str = "p50k_base";

const T_85_170: Option<PictureRule> = Some(PictureRule::Tiles { base: 85, tile: 170 });
const T_MINI: Option<PictureRule> = Some(PictureRule::Tiles { base: 2833, tile: 5667 });
const T_75_150: Option<PictureRule> = Some(PictureRule::Tiles { base: 75, tile: 150 });
const T_70_140: Option<PictureRule> = Some(PictureRule::Tiles { base: 70, tile: 140 });
const P_120: Option<PictureRule> = Some(PictureRule::Patches { percent: 120 });
const P_162: Option<PictureRule> = Some(PictureRule::Patches { percent: 162 });
const P_172: Option<PictureRule> = Some(PictureRule::Patches { percent: 172 });
const P_246: Option<PictureRule> = Some(PictureRule::Patches { percent: 246 });
const GEMINI_TILES: Option<PictureRule> = Some(PictureRule::GeminiTiles);

const fn entry(
    (provider, family, encoding): Group,
    name: &'static str,
    (context_window, max_output_tokens): (Option<u32>, Option<u32>),
    pictures: Option<PictureRule>,
    covers_versions: bool,
) -> Model {
    Model {
        name: Cow::Borrowed(name),
        provider: Cow::Borrowed(provider),
        family,
        encoding: Cow::Borrowed(encoding),
        context_window,
        max_output_tokens,
        pictures,
        accuracy: None,
        covers_versions,
        checked: Cow::Borrowed(CHECKED),
    }
}

type Group = (&'static str, Family, &'static str);

const fn model(
    group: Group,
    name: &'static str,
    window: Option<u32>,
    output: Option<u32>,
    pictures: Option<PictureRule>,
) -> Model {
    entry(group, name, (window, output), pictures, false)
}

/// A model that also covers its unknown newer versions.
const fn line(
    group: Group,
    name: &'static str,
    window: Option<u32>,
    output: Option<u32>,
    pictures: Option<PictureRule>,
) -> Model {
    entry(group, name, (window, output), pictures, true)
}

const GPT_4O: Group = (OPENAI, Family::Gpt4o, O200K);
const GPT_5: Group = (OPENAI, Family::Gpt5, O200K);
const GPT_6: Group = (OPENAI, Family::Gpt6, O200K);
const GPT_4: Group = (OPENAI, Family::Gpt4, CL100K);
const GPT_OSS: Group = (OPENAI, Family::GptOss, HARMONY);
const PLAIN: Group = (OPENAI, Family::Plain, CL100K);
const OLD: Group = (OPENAI, Family::Plain, P50K);
const CLAUDE: Group = (ANTHROPIC, Family::Claude, "claude-3");
const CLAUDE_47: Group = (ANTHROPIC, Family::Claude47, "claude-4.7");
const CLAUDE_48: Group = (ANTHROPIC, Family::Claude48, "claude-4.8");
const GEMINI: Group = (GOOGLE, Family::Gemini, O200K);

/// Every model; the order does not matter.
pub(super) static MODELS: &[Model] = &[
    model(GPT_4O, "gpt-4o", Some(128_000), Some(16_384), T_85_170),
    model(GPT_4O, "gpt-4o-2024-05-13", Some(128_000), Some(4_096), T_85_170),
    model(GPT_4O, "gpt-4o-transcribe", Some(16_000), Some(2_000), None),
    model(GPT_4O, "gpt-4o-mini-transcribe", Some(16_000), Some(2_000), None),
    model(GPT_4O, "gpt-4o-mini", Some(128_000), Some(16_384), T_MINI),
    model(GPT_4O, "chatgpt-4o", Some(128_000), Some(16_384), T_85_170),
    model(GPT_4O, "gpt-4.1", Some(1_047_576), Some(32_768), T_85_170),
    model(GPT_4O, "gpt-4.1-mini", Some(1_047_576), Some(32_768), P_162),
    model(GPT_4O, "gpt-4.1-nano", Some(1_047_576), Some(32_768), P_246),
    model(GPT_4O, "gpt-4.5", Some(128_000), Some(16_384), T_85_170),
    model(GPT_5, "o1", Some(200_000), Some(100_000), T_75_150),
    model(GPT_5, "o1-mini", Some(128_000), Some(65_536), T_75_150),
    model(GPT_5, "o1-preview", Some(128_000), Some(32_768), T_75_150),
    model(GPT_5, "o3", Some(200_000), Some(100_000), T_75_150),
    model(GPT_5, "o3-mini", Some(200_000), Some(100_000), T_75_150),
    model(GPT_5, "o4-mini", Some(200_000), Some(100_000), P_172),
    line(GPT_5, "gpt-5", Some(400_000), Some(128_000), T_70_140),
    model(GPT_5, "gpt-5-chat", Some(128_000), Some(16_384), T_70_140),
    model(GPT_5, "gpt-5-pro", Some(400_000), Some(272_000), T_70_140),
    model(GPT_5, "gpt-5-mini", Some(400_000), Some(128_000), P_120),
    model(GPT_5, "gpt-5-nano", Some(400_000), Some(128_000), P_246),
    model(GPT_5, "gpt-5.1", Some(400_000), Some(128_000), T_70_140),
    model(GPT_5, "gpt-5.1-chat", Some(128_000), Some(16_384), T_70_140),
    model(GPT_5, "gpt-5.2-chat", Some(128_000), Some(16_384), P_120),
    model(GPT_5, "gpt-5.3-codex-spark", Some(128_000), None, P_120),
    model(GPT_5, "gpt-5.2", Some(400_000), Some(128_000), P_120),
    model(GPT_5, "gpt-5.3", Some(128_000), Some(16_384), P_120),
    model(GPT_5, "gpt-5.3-codex", Some(400_000), Some(128_000), P_120),
    model(GPT_5, "gpt-5.4", Some(1_050_000), Some(128_000), P_120),
    model(GPT_5, "gpt-5.4-mini", Some(400_000), Some(128_000), P_120),
    model(GPT_5, "gpt-5.4-nano", Some(400_000), Some(128_000), P_120),
    model(GPT_5, "gpt-5.5", Some(1_050_000), Some(128_000), P_120),
    model(GPT_5, "gpt-5.6", Some(1_050_000), Some(128_000), P_120),
    model(GPT_5, "codex-mini", Some(200_000), Some(100_000), P_172),
    line(GPT_6, "gpt-6", Some(1_050_000), Some(128_000), P_120),
    model(GPT_4, "gpt-4", Some(8_192), Some(8_192), None),
    model(GPT_4, "gpt-4-32k", Some(32_768), Some(32_768), None),
    model(GPT_4, "gpt-4-turbo", Some(128_000), Some(4_096), T_85_170),
    model(GPT_4, "gpt-4-1106", Some(128_000), Some(4_096), None),
    model(GPT_4, "gpt-4-0125", Some(128_000), Some(4_096), None),
    model(GPT_4, "gpt-4-vision", Some(128_000), Some(4_096), T_85_170),
    model(GPT_4, "gpt-3.5", Some(16_385), Some(4_096), None),
    model(GPT_4, "gpt-3.5-turbo", Some(16_385), Some(4_096), None),
    model(GPT_4, "gpt-3.5-turbo-0301", Some(4_096), Some(4_096), None),
    model(GPT_4, "gpt-3.5-turbo-0613", Some(4_096), Some(4_096), None),
    model(GPT_4, "gpt-3.5-turbo-instruct", Some(4_096), Some(4_096), None),
    model(GPT_4, "gpt-35-turbo-instruct", Some(4_096), Some(4_096), None),
    model(GPT_4, "gpt-35", Some(16_385), Some(4_096), None),
    model(GPT_OSS, "gpt-oss", Some(131_072), Some(131_072), None),
    model(PLAIN, "text-embedding-3-small", Some(8_192), None, None),
    model(PLAIN, "text-embedding-3-large", Some(8_192), None, None),
    model(PLAIN, "text-embedding-3", Some(8_192), None, None),
    model(PLAIN, "text-embedding-ada-002", Some(8_192), None, None),
    model(PLAIN, "davinci-002", Some(16_384), Some(16_384), None),
    model(PLAIN, "babbage-002", Some(16_384), Some(16_384), None),
    model(OLD, "text-davinci-003", Some(4_097), Some(4_097), None),
    model(OLD, "text-davinci-002", Some(4_097), Some(4_097), None),
    model(CLAUDE, "claude-3-haiku", Some(200_000), Some(4_096), None),
    model(CLAUDE, "claude-3-sonnet", Some(200_000), Some(4_096), None),
    model(CLAUDE, "claude-3-opus", Some(200_000), Some(4_096), None),
    model(CLAUDE, "claude-3-5-sonnet", Some(200_000), Some(8_192), None),
    model(CLAUDE, "claude-3-5-haiku", Some(200_000), Some(8_192), None),
    model(CLAUDE, "claude-3-7-sonnet", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-sonnet-3-7", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-sonnet-4", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-sonnet-4-0", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-4-sonnet", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-opus-4", Some(200_000), Some(32_000), None),
    model(CLAUDE, "claude-opus-4-0", Some(200_000), Some(32_000), None),
    model(CLAUDE, "claude-4-opus", Some(200_000), Some(32_000), None),
    model(CLAUDE, "claude-opus-4-1", Some(200_000), Some(32_000), None),
    model(CLAUDE, "claude-sonnet-4-5", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-4-5-sonnet", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-haiku-4-5", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-4-5-haiku", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-opus-4-5", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-4-5-opus", Some(200_000), Some(64_000), None),
    model(CLAUDE, "claude-opus-4-6", Some(1_000_000), Some(128_000), None),
    model(CLAUDE, "claude-4-6-opus", Some(1_000_000), Some(128_000), None),
    model(CLAUDE, "claude-sonnet-4-6", Some(1_000_000), Some(64_000), None),
    model(CLAUDE, "claude-4-6-sonnet", Some(1_000_000), Some(64_000), None),
    model(CLAUDE_47, "claude-opus-4-7", Some(1_000_000), Some(128_000), None),
    model(CLAUDE_47, "claude-4-7-opus", Some(1_000_000), Some(128_000), None),
    model(CLAUDE_48, "claude-opus-4-8", Some(1_000_000), Some(128_000), None),
    model(CLAUDE_48, "claude-4-8-opus", Some(1_000_000), Some(128_000), None),
    model(CLAUDE_48, "claude-opus-5", Some(1_000_000), Some(128_000), None),
    model(CLAUDE_48, "claude-opus-5-5", Some(1_000_000), Some(128_000), None),
    model(CLAUDE_48, "claude-sonnet-5", Some(1_000_000), Some(128_000), None),
    model(CLAUDE_48, "claude-sonnet-5-5", Some(1_000_000), Some(128_000), None),
    model(CLAUDE_48, "claude-haiku-5-5", Some(1_000_000), None, None),
    model(CLAUDE_48, "claude-fable-5", Some(1_000_000), Some(128_000), None),
    model(CLAUDE_48, "claude-fable-5-1", Some(1_000_000), None, None),
    model(CLAUDE_48, "claude-fable-5-2", Some(1_000_000), None, None),
    model(CLAUDE_48, "claude-mythos-5-2", Some(1_000_000), None, None),
    model(GEMINI, "gemini-1.5-flash", Some(1_048_576), Some(8_192), GEMINI_TILES),
    model(GEMINI, "gemini-1.5-pro", Some(2_097_152), Some(8_192), GEMINI_TILES),
    model(GEMINI, "gemini-2.0-flash", Some(1_048_576), Some(8_192), GEMINI_TILES),
    model(GEMINI, "gemini-2.5-flash", Some(1_048_576), Some(65_536), GEMINI_TILES),
    model(GEMINI, "gemini-2.5-pro", Some(1_048_576), Some(65_536), GEMINI_TILES),
    // Publishers disagree: 32,768 to a million.
    model(GEMINI, "gemini-2.5-flash-image", None, Some(32_768), GEMINI_TILES),
    model(GEMINI, "gemini-2.5-flash-preview-tts", Some(8_192), Some(16_384), None),
    model(GEMINI, "gemini-2.5-pro-preview-tts", Some(8_192), Some(16_384), None),
    model(GEMINI, "gemini-3-pro-image", Some(65_536), Some(32_768), None),
    model(GEMINI, "gemini-3-flash", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-3-pro", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-3.1-flash-lite", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-3.1-pro", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-3.5-flash", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-3.6-flash", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-3.7-flash", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-3.8-flash", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-4-argon", Some(1_048_576), None, None),
    model(GEMINI, "gemini-pro-latest", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-flash-latest", Some(1_048_576), Some(65_536), None),
    model(GEMINI, "gemini-flash-lite-latest", Some(1_048_576), Some(65_536), None),
];
