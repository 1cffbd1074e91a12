//! The parameters that follow `-d NAME`, read one after the other.

use cli::UsageError;
use jack_parameters::options::{OptionReader, Spec, ValueForm};
use jack_parameters::{Effect, Parameter, Value, help_line};

/// An option of a driver.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Setting<'a> {
    /// `--help`
    Help,
    /// A parameter with its value; `word` is the value as it was written, if it was.
    Set { name: &'static str, value: Value, word: Option<&'a str> },
    /// The option has no effect, for the reason in this line.
    Notice(String),
}

/// Reads the options of one driver.
#[derive(Debug)]
pub(crate) struct SettingReader<'a> {
    words: OptionReader<'a>,
    specs: Vec<Spec<Option<&'static Parameter>>>,
}

/// Returns the option of a parameter.
pub(crate) fn spec<Id>(parameter: &'static Parameter, id: Id) -> Spec<Id> {
    let value = match parameter.effect {
        Effect::IfTrue | Effect::IfFalse | Effect::Ignored(false, _) => ValueForm::None,
        Effect::Valued | Effect::Ignored(true, _) => ValueForm::Required,
        Effect::OptionallyValued => ValueForm::Optional,
    };
    Spec { id, short: parameter.letter, long: parameter.long, value }
}

impl<'a> SettingReader<'a> {
    pub(crate) fn new(words: OptionReader<'a>, parameters: &'static [Parameter]) -> Self {
        let help = Spec { id: None, short: Some('h'), long: &["help"], value: ValueForm::None };
        let specs = parameters.iter().map(|parameter| spec(parameter, Some(parameter)));
        Self { words, specs: specs.chain([help]).collect() }
    }

    /// Returns the next setting, or `None` at the end.
    pub(crate) fn next_setting(&mut self) -> Result<Option<Setting<'a>>, UsageError> {
        let Some(found) = self.words.next_option(&self.specs).map_err(UsageError)? else {
            return Ok(None);
        };
        let Some(parameter) = found.id else { return Ok(Some(Setting::Help)) };
        let value = match (parameter.effect, found.value) {
            (Effect::Ignored(_, reason), _) => {
                let notice = format!("{} has no effect: {reason}", found.written);
                return Ok(Some(Setting::Notice(notice)));
            }
            (Effect::IfTrue | Effect::IfFalse, _) => Value::Bool(true),
            (_, None) => parameter.default.clone(),
            // JACK2 also writes no dither as a dash.
            (_, Some(word)) if parameter.name == "dither" && word.starts_with('-') => {
                parameter.default.clone()
            }
            (_, Some(word)) => parameter.parse(&found.written, word).map_err(UsageError)?,
        };
        Ok(Some(Setting::Set { name: parameter.name, value, word: found.value }))
    }
}

/// Returns the help of a driver: a title, and a line for each parameter.
pub(crate) fn help(title: &str, parameters: &[Parameter]) -> String {
    let lines = parameters.iter().map(Parameter::help);
    let help = help_line("-h, --help", "Print this");
    std::iter::once(format!("{title}:\n")).chain(lines).chain([help]).collect()
}
