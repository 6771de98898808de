//! Cues in other languages of the data than English and Chinese: few, strong and cheap.
//!
//! A cue that begins or ends with a letter is looked for as whole words; signs of unspaced scripts anywhere.

use super::text::has_word;

const CONSTRAINTS: [&str; 62] = [
    // Spanish
    "debes",
    "nunca",
    "siempre",
    "no uses",
    "no toques",
    "no cambies",
    "evita",
    "prefiero",
    "tienes que",
    "asegúrate",
    // German
    "du musst",
    "müssen",
    "niemals",
    "immer",
    "auf keinen fall",
    "bitte nicht",
    "verwende",
    "stelle sicher",
    "vermeide",
    "darf nicht",
    "dürfen nicht",
    "ändere nicht",
    // French
    "tu dois",
    "vous devez",
    "il faut",
    "ne jamais",
    "jamais",
    "toujours",
    "n'utilise pas",
    "ne touche pas",
    "évite",
    "assure-toi",
    // Portuguese
    "você deve",
    "sempre",
    "não use",
    "não altere",
    "não mude",
    "evite",
    // Italian
    "devi",
    "sempre e solo",
    "non usare",
    "non toccare",
    "mai",
    // Russian
    "нельзя",
    "всегда",
    "никогда",
    "обязательно",
    "не используй",
    "не трогай",
    "должен",
    // Japanese
    "しないで",
    "必ず",
    "禁止",
    "使わないで",
    "絶対に",
    "変更しない",
    "なければならない",
    // Korean
    "하지 마",
    "반드시",
    "절대",
    "해야 합니다",
    "사용하지",
];
const CORRECTIONS: [&str; 16] = [
    "quise decir",
    "en realidad",
    "eso no es",
    "nein,",
    "sondern",
    "ich meinte",
    "je voulais dire",
    "en fait",
    "plutôt que",
    "na verdade",
    "違います",
    "じゃなくて",
    "ではなく",
    "아니라",
    "не так",
    "я имел в виду",
];
const DECISIONS: [&str; 14] = [
    "he decidido",
    "usaré",
    "ich verwende",
    "ich habe mich für",
    "die ursache ist",
    "j'ai décidé",
    "je vais utiliser",
    "decidi",
    "vou usar",
    "原因は",
    "ことにしました",
    "を採用",
    "решил",
    "причина в",
];
const OUTCOMES: [&str; 14] = [
    "las pruebas pasan",
    "he corregido",
    "está listo",
    "alle tests",
    "ist behoben",
    "ist fertig",
    "les tests passent",
    "est corrigé",
    "os testes passam",
    "修正しました",
    "完了しました",
    "追加しました",
    "готово",
    "исправлено",
];

/// Whether a sentence, already in lower case, holds one of the cues.
fn any(lower: &str, cues: &[&str]) -> bool {
    cues.iter().any(|cue| match cue.is_ascii() {
        true => has_word(lower, cue),
        false => lower.contains(cue),
    })
}

pub(super) fn constrains(lower: &str) -> bool {
    any(lower, &CONSTRAINTS)
}

pub(super) fn corrects(lower: &str) -> bool {
    any(lower, &CORRECTIONS)
}

pub(super) fn decides(lower: &str) -> bool {
    any(lower, &DECISIONS)
}

pub(super) fn reports(lower: &str) -> bool {
    any(lower, &OUTCOMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_recognised_and_talk_is_not() {
        for sentence in [
            "nunca borres la base de datos",
            "bitte nicht die tests ändern, verwende rust",
            "il faut garder l'api",
            "não altere o esquema",
            "никогда не удаляй тесты",
            "テストを変更しないでください",
            "테스트를 삭제하지 마세요",
        ] {
            assert!(constrains(sentence), "{sentence}");
        }
        for sentence in [
            "hola, ¿qué tal?",
            "das ist gut",
            "c'est bien",
            "映画が好きです",
            "мне нравится фильм",
            "the email is maintained",
        ] {
            assert!(!constrains(sentence), "{sentence}");
        }
    }

    #[test]
    fn corrections_decisions_and_outcomes() {
        assert!(corrects("nein, ich meinte den anderen") && corrects("赤ではなく青です"));
        assert!(decides("ich verwende eine hashtabelle") && reports("los tests: las pruebas pasan"));
    }
}
