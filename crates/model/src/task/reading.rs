//! The readings of a task: values that are read from its sites, and the arguments that are bound to them.

use crate::helper::{Helper, WrongArguments};
use crate::ids::SiteName;
use crate::locator::{Arguments, JsPage, Locator, LocatorKind};

/// One value of a site that a task reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The site that the value is read from.
    pub site: SiteName,
    /// The locator or helper call, as written in the task file.
    pub text: String,
    /// The parsed form of the text.
    pub recipe: ReadingRecipe,
    /// The variables of the task for which the recipe has placeholders.
    pub arguments: Arguments,
    /// The names of the captured values for which the recipe has placeholders.
    pub captured: Vec<String>,
    /// The path of the page for a `js:` locator that names none.
    pub page: Option<String>,
    /// The account whose session is used if the text names none.
    pub account: Option<String>,
}

/// The way in which a value is read.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadingRecipe {
    /// The value is read by a locator.
    Locator(Locator),
    /// The value is read by a helper of the site.
    Helper {
        /// The helper, with its locator.
        helper: Box<Helper>,
        /// The texts for the helper's parameters. They may contain placeholders.
        arguments: Vec<String>,
    },
}

/// A reading that can be run, because all of its placeholders are filled.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The site that the value is read from.
    pub site: SiteName,
    /// The locator that is run.
    pub locator: Locator,
    /// The helper that converts the value. `None` means that the value is used as read.
    pub helper: Option<Box<Helper>>,
    /// The path of the page for a `js:` locator that names none.
    pub page: Option<String>,
}

impl Reading {
    /// Fills the placeholders. `captured` contains the captured values as texts, by name.
    ///
    /// Errors: [`WrongArguments`] if the number of arguments of a helper call differs from the number of its
    /// parameters.
    pub fn bind(&self, captured: &Arguments) -> Result<Bound, WrongArguments> {
        let wanted = |(name, _): &&(String, String)| self.captured.contains(name);
        let all = self.arguments.0.iter().chain(captured.0.iter().filter(wanted));
        let all = Arguments(all.cloned().collect());
        let (mut locator, helper) = match &self.recipe {
            ReadingRecipe::Locator(locator) => (locator.clone().with(&all), None),
            ReadingRecipe::Helper { helper, arguments } => {
                let given: Vec<String> = arguments.iter().map(|text| all.fill(text, str::to_owned)).collect();
                (helper.locator.clone().with(&helper.arguments(&given)?), Some(helper.clone()))
            }
        };
        if let Some(account) = &self.account {
            match &mut locator.kind {
                LocatorKind::Http(http) => http.account = Some(account.clone()),
                LocatorKind::Js(js) if js.page != JsPage::Live => js.account = Some(account.clone()),
                LocatorKind::Js(_)
                | LocatorKind::Sql(_)
                | LocatorKind::Exec(_)
                | LocatorKind::File(_)
                | LocatorKind::Trace(_) => {}
            }
        }
        Ok(Bound { site: self.site.clone(), locator, helper, page: self.page.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locator::parse;

    fn reading(recipe: ReadingRecipe, captured: &[&str]) -> Reading {
        Reading {
            site: SiteName::parse("shop").expect("a name"),
            text: String::new(),
            recipe,
            arguments: Arguments(vec![("upc".to_owned(), "L'1".to_owned())]),
            captured: captured.iter().map(|name| (*name).to_owned()).collect(),
            page: None,
            account: Some("customer".to_owned()),
        }
    }

    #[test]
    fn variables_and_captured_values_are_bound_and_others_stay_out() {
        let captured = Arguments(vec![("last".to_owned(), "7".to_owned()), ("other".to_owned(), "8".to_owned())]);
        let sql = parse("sql: SELECT {upc}, {last}, {other}").expect("a locator");
        let bound = reading(ReadingRecipe::Locator(sql), &["last"]).bind(&captured).expect("bound");
        let LocatorKind::Sql(sql) = bound.locator.kind else { panic!("sql") };
        assert_eq!(sql.arguments.get("upc"), Some("L'1"));
        assert_eq!((sql.arguments.get("last"), sql.arguments.get("other")), (Some("7"), None));
    }

    #[test]
    fn helpers_are_called_with_filled_texts_and_the_account_is_the_readings() {
        let helper = Helper {
            name: "price".to_owned(),
            parameters: vec!["sku".to_owned()],
            locator: parse("http: /p/{sku}").expect("a locator"),
            text: String::new(),
            gives: None,
            otherwise: None,
        };
        let call = |arguments| ReadingRecipe::Helper { helper: Box::new(helper.clone()), arguments };
        let bound = reading(call(vec!["x {upc}".to_owned()]), &[]).bind(&Arguments::default()).expect("bound");
        let LocatorKind::Http(http) = bound.locator.kind else { panic!("http") };
        assert_eq!((http.path.as_str(), http.account.as_deref()), ("/p/x%20L%271", Some("customer")));
        assert!(reading(call(Vec::new()), &[]).bind(&Arguments::default()).is_err());
    }
}
